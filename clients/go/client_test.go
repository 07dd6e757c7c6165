package facets_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	facets "facets.dev/client"
	v1 "facets.dev/client/v1"
)

// connect makes a client of the server that FACETS_TARGET names; the test is skipped where it names none.
func connect(t *testing.T) *facets.Client {
	t.Helper()
	target := os.Getenv("FACETS_TARGET")
	if target == "" {
		t.Skip("FACETS_TARGET names no server")
	}
	client, err := facets.Connect(target, facets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// collection makes an empty one, deleted at the end.
func collection(t *testing.T, client *facets.Client) string {
	t.Helper()
	name := fmt.Sprintf("go-%d", time.Now().UnixNano())
	if _, err := client.Collections.CreateCollection(context.Background(), &v1.CreateCollectionRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Collections.DeleteCollection(context.Background(), &v1.DeleteCollectionRequest{Name: name})
	})
	return name
}

// listed gives the documents one by one.
func listed(documents []facets.Document) func() (facets.Document, bool) {
	return func() (facets.Document, bool) {
		if len(documents) == 0 {
			return facets.Document{}, false
		}
		first := documents[0]
		documents = documents[1:]
		return first, true
	}
}

func TestDocumentsAreStoredAndFoundWithWhatAnswers(t *testing.T) {
	client := connect(t)
	name := collection(t, client)
	documents := []facets.Document{
		{ID: "fox", Text: "\U0001f98a Foxes hunt at night.", Payload: map[string]interface{}{"kind": "animal", "year": 1990}},
		{ID: "tax", Text: "\U0001f4b6 Income taxes are due in April.", Payload: map[string]interface{}{"kind": "law"}},
		{ID: "empty", Text: "  "},
	}
	var acks []facets.Ack
	err := client.Index(context.Background(), name, listed(documents), facets.IndexOptions{}, func(ack facets.Ack) error {
		acks = append(acks, ack)
		return nil
	})
	if err != nil || len(acks) != 1 || acks[0].GetNumUpserted() != 2 || acks[0].NumDocuments != 3 {
		t.Fatal(err, acks)
	}
	if rejected := acks[0].GetRejectedDocuments(); len(rejected) != 1 || rejected[0].GetId() != "empty" {
		t.Fatal(rejected)
	}
	found, err := client.Search(context.Background(), name, []string{"When are taxes due?", "what do foxes do"}, facets.SearchOptions{TopK: 1})
	if err != nil || len(found) != 2 {
		t.Fatal(err, found)
	}
	if hit := found[0][0]; hit.GetId() != "tax" || !strings.Contains(facets.Part(hit.GetText(), hit.GetAnswer()), "April") {
		t.Fatal(hit)
	}
	if hit := found[1][0]; hit.GetId() != "fox" || hit.GetPayload().AsMap()["year"] != 1990.0 {
		t.Fatal(hit)
	}
	where := &v1.Filter{Condition: &v1.Filter_Field{Field: &v1.FieldCondition{Field: "kind", Test: &v1.FieldCondition_Exists{Exists: false}}}}
	none, err := client.Search(context.Background(), name, []string{"taxes"}, facets.SearchOptions{Where: where})
	if err != nil || len(none[0]) != 0 {
		t.Fatal(err, none)
	}
}

func TestManyBatchesAreAcknowledgedInOrderAndResumed(t *testing.T) {
	client := connect(t)
	name := collection(t, client)
	var documents []facets.Document
	for number := 0; number < 40; number++ {
		documents = append(documents, facets.Document{ID: fmt.Sprintf("d%02d", number), Text: fmt.Sprintf("Note number %d of the sea.", number)})
	}
	stop := errors.New("enough")
	var last facets.Ack
	err := client.Index(context.Background(), name, listed(documents), facets.IndexOptions{BatchSize: 4}, func(ack facets.Ack) error {
		last = ack
		if ack.NumDocuments == 12 {
			return stop
		}
		return nil
	})
	if err != stop || last.GetSequence() != 3 {
		t.Fatal(err, last)
	}
	rest := facets.IndexOptions{BatchSize: 4, ResumeToken: last.ResumeToken}
	if err := client.Index(context.Background(), name, listed(documents[last.NumDocuments:]), rest, nil); err != nil {
		t.Fatal(err)
	}
	counted, err := client.Documents.CountDocuments(context.Background(), &v1.CountDocumentsRequest{Collection: name})
	if err != nil || counted.GetNumDocuments() != 40 {
		t.Fatal(err, counted)
	}
}

func TestFacetsHaveTheirShape(t *testing.T) {
	client := connect(t)
	found, err := client.Embed(context.Background(), []string{"The sea is calm.", "Taxes rose.", "A dog barks."}, facets.EmbedOptions{BatchSize: 2, Normalize: true})
	if err != nil || len(found) != 3 {
		t.Fatal(err, len(found))
	}
	sum := 0.0
	for _, value := range found[2][0] {
		sum += float64(value) * float64(value)
	}
	if math.Abs(sum-1) > 1e-3 {
		t.Fatalf("the length of a facet is %f, expected 1", math.Sqrt(sum))
	}
}

func TestErrorsHaveTheirCodeFieldAndReason(t *testing.T) {
	client := connect(t)
	_, err := client.Embed(context.Background(), []string{"fine", ""}, facets.EmbedOptions{})
	var failed *facets.Error
	if !errors.As(err, &failed) || failed.Code != codes.InvalidArgument || failed.Field != "texts[1]" || failed.Reason == "" {
		t.Fatalf("%#v", err)
	}
	if _, err := client.Search(context.Background(), "nowhere", []string{"x"}, facets.SearchOptions{}); facets.CodeOf(err) != codes.NotFound {
		t.Fatal(err)
	}
	if err := client.Index(context.Background(), "nowhere", listed(nil), facets.IndexOptions{}, nil); facets.CodeOf(err) != codes.NotFound {
		t.Fatal(err)
	}
}

func TestAServerThatIsAwayEndsWithTheDeadline(t *testing.T) {
	client, err := facets.Connect("127.0.0.1:1", facets.Options{Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Embed(context.Background(), []string{"x"}, facets.EmbedOptions{})
	if code := facets.CodeOf(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
		t.Fatal(err)
	}
}

func TestATargetIsNoAddressOfTheWeb(t *testing.T) {
	if _, err := facets.Connect("http://localhost:8080", facets.Options{}); err == nil {
		t.Fatal("expected an error")
	}
}

func TestPartsCountCharacters(t *testing.T) {
	if got := facets.Part("\U0001f98a fox", &v1.Span{Start: 2, End: 5}); got != "fox" {
		t.Fatal(got)
	}
	if got := facets.Part("fox", &v1.Span{Start: 2, End: 50}); got != "" {
		t.Fatal(got)
	}
}
