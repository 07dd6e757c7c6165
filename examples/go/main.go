// Searches a collection of a Facets server, with code generated from the protos:
//
//	go run . -target localhost:50051 -collection wiki "how vaccines protect against disease"
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	facets "example.org/facets/v1"
)

// Tries again what the server refuses for now, within the deadline of the call; grpc-go honours its pushback.
const retries = `{"methodConfig": [{"name": [{"service": "facets.v1.DocumentService"}], "retryPolicy": {
	"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "5s", "backoffMultiplier": 2,
	"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`

// codec reads and writes messages of today's protobuf; the gRPC of Debian 12 knows those of the one before.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(message interface{}) ([]byte, error) { return proto.Marshal(message.(proto.Message)) }

func (codec) Unmarshal(data []byte, message interface{}) error {
	return proto.Unmarshal(data, message.(proto.Message))
}

func init() { encoding.RegisterCodec(codec{}) }

func main() {
	target := flag.String("target", "localhost:50051", "HOST:PORT of the server")
	collection := flag.String("collection", "wiki", "where to search")
	topK := flag.Uint("top-k", 3, "documents to show")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "expected a question")
		os.Exit(2)
	}
	if err := search(*target, *collection, strings.Join(flag.Args(), " "), uint32(*topK)); err != nil {
		fmt.Fprintln(os.Stderr, explain(err))
		os.Exit(1)
	}
}

func search(target, collection, question string, topK uint32) error {
	connection, err := grpc.Dial(target, grpc.WithInsecure(), grpc.WithDefaultServiceConfig(retries))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if key := os.Getenv("FACETS_API_KEY"); key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
	}
	query := &facets.SearchQuery{Query: &facets.SearchQuery_Text{Text: question}}
	request := &facets.SearchRequest{Collection: collection, Queries: []*facets.SearchQuery{query}, TopK: &topK}
	reply, err := facets.NewDocumentServiceClient(connection).Search(ctx, request)
	if err != nil {
		return err
	}
	for _, hit := range reply.Results[0].Hits {
		fmt.Printf("%s\t%.3f\t%s\n", hit.Id, hit.GetConfidence(), part(hit.Text, hit.Answer))
	}
	return nil
}

// part cuts a span out of a text: spans count characters, strings of Go are bytes.
func part(text string, span *facets.Span) string {
	if span == nil {
		return ""
	}
	return string([]rune(text)[span.Start:span.End])
}

// explain is the server's sentence, its code, and the field that it is about.
func explain(err error) string {
	said := status.Convert(err)
	text := fmt.Sprintf("%s: %s", said.Code(), said.Message())
	for _, detail := range said.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, violation := range bad.FieldViolations {
				text += fmt.Sprintf(" (%s)", violation.Field)
			}
		}
	}
	return text
}
