package facets

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "facets.dev/client/v1"
)

const (
	mostTries  = 8
	firstPause = 200 * time.Millisecond
)

// Document to store; Payload is any JSON object.
type Document struct {
	ID      string
	Text    string
	Payload map[string]interface{}
}

// IndexOptions of Index; the zero value is the default.
type IndexOptions struct {
	// BatchSize is the number of documents with one acknowledgement; 0: 64.
	BatchSize int
	// ResumeToken of an earlier acknowledgement: documents are those that it did not acknowledge.
	ResumeToken string
}

// Ack says that a batch is durable, and so are all before it.
type Ack struct {
	*v1.UpsertStreamAck
	// ResumeToken opens the stream again, also from another program.
	ResumeToken string
	// NumDocuments that were given so far and are done.
	NumDocuments int
}

// Index stores documents in bounded memory, in order, and calls acked for each batch once it is durable.
//
// A broken connection is mended: what was not acknowledged is sent again, and nothing is stored twice. A bad document is
// named in Ack.RejectedDocuments, and the rest is stored. next returns false where there are no more.
func (client *Client) Index(ctx context.Context, collection string, next func() (Document, bool), options IndexOptions, acked func(Ack) error) error {
	load := &indexing{client: client, collection: collection, next: next, acked: acked, token: options.ResumeToken, size: options.BatchSize}
	if load.size <= 0 {
		load.size = defaultBatch
	}
	pause := firstPause
	for try := 1; ; try++ {
		before := load.numDocuments
		err := load.run(ctx)
		if load.numDocuments > before {
			try, pause = 1, firstPause
		}
		code := CodeOf(err)
		if code != codes.Unavailable && code != codes.ResourceExhausted || try == mostTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			pause *= 2
		}
	}
}

type indexing struct {
	client       *Client
	collection   string
	next         func() (Document, bool)
	acked        func(Ack) error
	token        string
	size         int
	numDocuments int
	waiting      []*v1.UpsertStreamBatch // read, not acknowledged
	ended        bool
}

// run opens the stream and stores until the end or the first error.
func (load *indexing) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := load.client.Documents.UpsertStream(ctx)
	if err != nil {
		return errorOf(err)
	}
	open := &v1.UpsertStreamOpen{Collection: load.collection, ResumeToken: load.token}
	// A send that fails says nothing: the status of the stream comes with the next reply.
	_ = stream.Send(&v1.UpsertStreamRequest{Message: &v1.UpsertStreamRequest_Open{Open: open}})
	reply, err := stream.Recv()
	if err != nil {
		return errorOf(err)
	}
	opened := reply.GetOpened()
	load.token = opened.GetResumeToken()
	window := int(opened.GetMaxUnackedBatches())
	if window < 1 {
		window = 1
	}
	for place := range load.waiting { // those that were stored before are acknowledged again
		_ = stream.Send(request(load.waiting[place]))
	}
	sequence := opened.GetLastAckedSequence()
	if len(load.waiting) > 0 {
		sequence = load.waiting[len(load.waiting)-1].Sequence
	}
	for {
		for len(load.waiting) < window && !load.ended {
			batch, err := load.read()
			if err != nil {
				return err
			}
			if batch == nil {
				break
			}
			sequence++
			batch.Sequence = sequence
			load.waiting = append(load.waiting, batch)
			_ = stream.Send(request(batch))
		}
		if len(load.waiting) == 0 {
			return errorOf(stream.CloseSend())
		}
		reply, err := stream.Recv()
		if err != nil {
			return errorOf(err)
		}
		if err := load.settle(reply.GetAck()); err != nil {
			return err
		}
	}
}

func (load *indexing) settle(ack *v1.UpsertStreamAck) error {
	batch := load.waiting[0]
	if ack.GetSequence() != batch.Sequence {
		return fmt.Errorf("the server acknowledged batch %d, expected %d", ack.GetSequence(), batch.Sequence)
	}
	load.waiting = load.waiting[1:]
	load.numDocuments += len(batch.Documents)
	if load.acked == nil {
		return nil
	}
	return load.acked(Ack{ack, load.token, load.numDocuments})
}

// read takes the next batch; nil at the end.
func (load *indexing) read() (*v1.UpsertStreamBatch, error) {
	batch := &v1.UpsertStreamBatch{}
	for len(batch.Documents) < load.size {
		document, more := load.next()
		if !more {
			load.ended = true
			break
		}
		payload, err := structpb.NewStruct(document.Payload)
		if err != nil {
			return nil, fmt.Errorf("document %q: %w", document.ID, err)
		}
		batch.Documents = append(batch.Documents, &v1.Document{Id: document.ID, Text: document.Text, Payload: payload})
	}
	if len(batch.Documents) == 0 {
		return nil, nil
	}
	return batch, nil
}

func request(batch *v1.UpsertStreamBatch) *v1.UpsertStreamRequest {
	return &v1.UpsertStreamRequest{Message: &v1.UpsertStreamRequest_Batch{Batch: batch}}
}
