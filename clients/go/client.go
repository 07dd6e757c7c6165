// Package facets is a client of a Facets server: several embeddings a text, and search that says which one matched.
package facets

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	v1 "facets.dev/client/v1"
)

const (
	defaultPort    = "50051"
	defaultTimeout = 30 * time.Second
	defaultBatch   = 64
	mostBytes      = 64 << 20
)

// Tries again what the server refuses for now, within the deadline of the call; grpc-go honours its pushback.
const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.1s",
	"maxBackoff": "5s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`

// codec reads and writes messages of today's protobuf, also where gRPC knows only those of the one before (Debian 12).
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(message interface{}) ([]byte, error) {
	return proto.Marshal(message.(proto.Message))
}

func (codec) Unmarshal(data []byte, message interface{}) error {
	return proto.Unmarshal(data, message.(proto.Message))
}

func init() { encoding.RegisterCodec(codec{}) }

// Options say how to connect.
type Options struct {
	// APIKey is for servers that ask for one.
	APIKey string
	// TLS encrypts; nil: in the clear.
	TLS *tls.Config
	// Timeout of calls whose context has no deadline, retries included; 0: 30 seconds.
	Timeout time.Duration
}

// Client is a connection to a server; it is safe for any number of goroutines. Its fields are every rpc as generated.
type Client struct {
	Texts       v1.EmbeddingServiceClient
	Similarity  v1.SimilarityServiceClient
	Summaries   v1.SummarizationServiceClient
	Collections v1.CollectionServiceClient
	Documents   v1.DocumentServiceClient
	Relations   v1.RelationServiceClient
	Papers      v1.RecommendationServiceClient
	Models      v1.ModelServiceClient

	connection *grpc.ClientConn
	options    Options
}

// Connect makes a client of the server at HOST or HOST:PORT; nothing is sent before the first call.
func Connect(target string, options Options) (*Client, error) {
	if strings.Contains(target, "://") {
		return nil, fmt.Errorf("target must be HOST or HOST:PORT, got %q", target)
	}
	if !strings.Contains(target, ":") {
		target += ":" + defaultPort
	}
	client := &Client{options: options}
	security := grpc.WithInsecure()
	if options.TLS != nil {
		security = grpc.WithTransportCredentials(credentials.NewTLS(options.TLS))
	}
	connection, err := grpc.Dial(target, security, grpc.WithDefaultServiceConfig(retries),
		grpc.WithUnaryInterceptor(client.unary), grpc.WithStreamInterceptor(client.stream),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostBytes)))
	if err != nil {
		return nil, err
	}
	client.connection = connection
	client.Texts = v1.NewEmbeddingServiceClient(connection)
	client.Similarity = v1.NewSimilarityServiceClient(connection)
	client.Summaries = v1.NewSummarizationServiceClient(connection)
	client.Collections = v1.NewCollectionServiceClient(connection)
	client.Documents = v1.NewDocumentServiceClient(connection)
	client.Relations = v1.NewRelationServiceClient(connection)
	client.Papers = v1.NewRecommendationServiceClient(connection)
	client.Models = v1.NewModelServiceClient(connection)
	return client, nil
}

// Close ends the connection; calls under way fail.
func (client *Client) Close() error { return client.connection.Close() }

func (client *Client) withKey(ctx context.Context) context.Context {
	if client.options.APIKey == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+client.options.APIKey)
}

func (client *Client) unary(ctx context.Context, method string, request, reply interface{},
	connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if _, has := ctx.Deadline(); !has {
		timeout := client.options.Timeout
		if timeout == 0 {
			timeout = defaultTimeout
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return errorOf(invoke(client.withKey(ctx), method, request, reply, connection, options...))
}

func (client *Client) stream(ctx context.Context, description *grpc.StreamDesc, connection *grpc.ClientConn,
	method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	return open(client.withKey(ctx), description, connection, method, options...)
}

// EmbedOptions of Embed; the zero value is the default.
type EmbedOptions struct {
	// Model by name; empty: the server's default.
	Model string
	// Normalize scales every facet to unit length.
	Normalize bool
	// BatchSize is the number of texts of one request; 0: 64.
	BatchSize int
}

// Embed gives the facets of any number of texts, [text][facet][dimension], in their order.
func (client *Client) Embed(ctx context.Context, texts []string, options EmbedOptions) ([][][]float32, error) {
	size := options.BatchSize
	if size <= 0 {
		size = defaultBatch
	}
	found := make([][][]float32, 0, len(texts))
	for start := 0; start == 0 || start < len(texts); start += size {
		end := start + size
		if end > len(texts) {
			end = len(texts)
		}
		request := &v1.EmbedRequest{Texts: texts[start:end], Model: options.Model, Normalize: options.Normalize,
			Dtype: v1.DataType_DATA_TYPE_FLOAT32}
		reply, err := client.Texts.Embed(ctx, request)
		if err != nil {
			return nil, err
		}
		part, err := arrayOf(reply.GetFacetEmbeddings())
		if err != nil {
			return nil, err
		}
		found = append(found, part...)
	}
	return found, nil
}

// arrayOf reads float32 of shape [texts, facets, dim].
func arrayOf(array *v1.FacetArray) ([][][]float32, error) {
	shape, data := array.GetShape(), array.GetData()
	if len(shape) != 3 || len(data) != int(4*shape[0]*shape[1]*shape[2]) {
		return nil, fmt.Errorf("the array has shape %v and %d bytes, expected three dimensions of float32", shape, len(data))
	}
	found := make([][][]float32, shape[0])
	for text := range found {
		found[text] = make([][]float32, shape[1])
		for facet := range found[text] {
			vector := make([]float32, shape[2])
			for place := range vector {
				vector[place] = math.Float32frombits(binary.LittleEndian.Uint32(data))
				data = data[4:]
			}
			found[text][facet] = vector
		}
	}
	return found, nil
}

// SearchOptions of Search; the zero value is the default.
type SearchOptions struct {
	// TopK is the number of documents for each query; 0: 10.
	TopK uint32
	// Mode: hybrid unless another one is said.
	Mode v1.SearchMode
	// Combine: what several questions in one query ask for.
	Combine v1.FacetCombination
	// Where: only documents whose payload matches.
	Where *v1.Filter
	// MinConfidence of hits, in [0, 1]; 0: all.
	MinConfidence float64
	// Diversify: how much the hits shall differ, in [0, 1].
	Diversify float64
	// Evidence: say which facet met which.
	Evidence bool
	// Exact: compare with every document, never an approximate index.
	Exact bool
	// MinRevision reads only this revision or a later one, to read your writes.
	MinRevision uint64
}

// Search gives the best documents of a collection for each query, best first; hit.Answer says what answers.
func (client *Client) Search(ctx context.Context, collection string, queries []string, options SearchOptions) ([][]*v1.SearchHit, error) {
	request := &v1.SearchRequest{Collection: collection, Mode: options.Mode, Combine: options.Combine,
		Where: options.Where, Evidence: options.Evidence, Exact: options.Exact, MinRevision: options.MinRevision}
	for _, text := range queries {
		request.Queries = append(request.Queries, &v1.SearchQuery{Query: &v1.SearchQuery_Text{Text: text}})
	}
	if options.TopK > 0 {
		request.TopK = &options.TopK
	}
	if options.MinConfidence > 0 {
		request.MinConfidence = &options.MinConfidence
	}
	if options.Diversify > 0 {
		request.Diversify = &options.Diversify
	}
	reply, err := client.Documents.Search(ctx, request)
	if err != nil {
		return nil, err
	}
	found := make([][]*v1.SearchHit, len(reply.GetResults()))
	for place, result := range reply.GetResults() {
		found[place] = result.GetHits()
	}
	return found, nil
}

// Part cuts a span out of a text: spans count characters, strings of Go are bytes.
func Part(text string, span *v1.Span) string {
	characters := []rune(text)
	if span == nil || span.GetStart() >= span.GetEnd() || int(span.GetEnd()) > len(characters) {
		return ""
	}
	return string(characters[span.GetStart():span.GetEnd()])
}
