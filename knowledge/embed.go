package knowledge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/library"
)

// An Embedder is an embedding model behind an OpenAI-compatible endpoint. It ranks the
// built-in cards together with the index. Where it fails or is slow, the index ranks
// alone.
type Embedder struct {
	BaseURL string // empty means OpenAI's own
	Key     string
	Name    string
	// Load and Save store the vectors of all cards, under a key made from the model and
	// the cards. If nil, the vectors are lost when the program ends.
	Load func(ctx context.Context, key string) ([]byte, bool)
	Save func(ctx context.Context, key string, vectors []byte) error
	// HTTP is the client; nil means http.DefaultClient.
	HTTP *http.Client

	mu      sync.Mutex
	vectors [][]float32 // by card; unit vectors
	failed  time.Time   // of the last failure to embed the cards
}

const (
	embedTimeout = 3 * time.Second  // for one question
	cardsTimeout = 30 * time.Second // for all cards
	embedRetry   = 5 * time.Minute
	embedBatch   = 128
	// rankDamping is the constant of reciprocal rank fusion.
	rankDamping = 20.0
	// embedDepth is the number of cards with the most similar vectors that take part in
	// the fusion.
	embedDepth = 20
)

// rerank orders passages by reciprocal rank fusion of the index's rank and the vectors'
// rank. It adds cards that only the vectors find. A score is that of the index or of the
// vectors, lowered where needed so that scores fall from first to last.
func (e *Embedder) rerank(ctx context.Context, question string, near []Passage, l lang.Lang) []Passage {
	lib := library.BuiltIn()
	vectors := e.cardVectors(ctx, lib.Cards)
	if vectors == nil {
		return near
	}
	short, done := context.WithTimeout(ctx, embedTimeout)
	defer done()
	asked, err := e.embed(short, []string{redact.Text(question)})
	if err != nil {
		return near
	}
	type hit struct {
		card       int
		similarity float64
	}
	hits := make([]hit, 0, len(vectors))
	for i, v := range vectors {
		hits = append(hits, hit{i, dot(v, asked[0])})
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(b.similarity, a.similarity) })
	fused := map[string]float64{}
	byID := map[string]Passage{}
	for i, p := range near {
		fused[p.id] += 1 / (rankDamping + float64(i))
		byID[p.id] = p
	}
	for i, h := range hits[:min(len(hits), embedDepth)] {
		c := lib.Cards[h.card]
		fused[c.ID] += 1 / (rankDamping + float64(i))
		p, ok := byID[c.ID]
		if !ok {
			p = passage(c, l, 0)
		}
		p.Score = max(p.Score, h.similarity*minScoreNotField)
		byID[c.ID] = p
	}
	all := slices.SortedFunc(maps.Values(byID), func(a, b Passage) int {
		return cmp.Or(cmp.Compare(fused[b.id], fused[a.id]), strings.Compare(a.id, b.id))
	})
	for i := range all[1:] {
		all[i+1].Score = min(all[i+1].Score, all[i].Score)
	}
	return all
}

// cardVectors returns the vectors of the cards, loaded or newly made; nil where they
// are not available now.
func (e *Embedder) cardVectors(ctx context.Context, list []cards.Card) [][]float32 {
	if !e.mu.TryLock() {
		return nil // another call is making them; do not wait
	}
	defer e.mu.Unlock()
	if e.vectors != nil || !e.failed.IsZero() && time.Since(e.failed) < embedRetry {
		return e.vectors
	}
	texts := make([]string, len(list))
	sum := sha256.New()
	sum.Write([]byte(e.Name))
	for i, c := range list {
		texts[i] = c.Title.EN + " / " + c.Title.ZH + "\n" + c.Text.EN
		sum.Write([]byte(texts[i]))
	}
	key := hex.EncodeToString(sum.Sum(nil)[:16])
	if e.Load != nil {
		if b, ok := e.Load(ctx, key); ok {
			if e.vectors = unpack(b, len(list)); e.vectors != nil {
				return e.vectors
			}
		}
	}
	ctx, done := context.WithTimeout(ctx, cardsTimeout)
	defer done()
	var all [][]float32
	for part := range slices.Chunk(texts, embedBatch) {
		v, err := e.embed(ctx, part)
		if err != nil {
			e.failed = time.Now()
			return nil
		}
		all = append(all, v...)
	}
	e.vectors = all
	if e.Save != nil {
		_ = e.Save(ctx, key, pack(all)) // after a failure the next run makes them again
	}
	return all
}

// embed returns a unit vector for each text.
func (e *Embedder) embed(ctx context.Context, texts []string) ([][]float32, error) {
	resp, err := client(e.BaseURL, e.Key, e.HTTP).CreateEmbeddings(ctx, openai.EmbeddingRequest{Input: texts, Model: openai.EmbeddingModel(e.Name)})
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for _, d := range resp.Data {
		if d.Index >= 0 && d.Index < len(out) {
			out[d.Index] = unit(d.Embedding)
		}
	}
	for _, v := range out {
		if len(v) == 0 || len(v) != len(out[0]) {
			return nil, errNoVectors
		}
	}
	return out, nil
}

func unit(v []float32) []float32 {
	size := float32(math.Sqrt(dot(v, v)))
	if size == 0 {
		return nil
	}
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = x / size
	}
	return out
}

func dot(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var sum float64
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}

func pack(vectors [][]float32) (b []byte) {
	for _, v := range vectors {
		b, _ = binary.Append(b, binary.LittleEndian, v) // never fails: numbers have a fixed size
	}
	return b
}

// unpack decodes the result of pack; nil where it does not hold count vectors.
func unpack(b []byte, count int) [][]float32 {
	if count == 0 || len(b) == 0 || len(b)%(4*count) != 0 {
		return nil
	}
	size := len(b) / (4 * count)
	all := make([][]float32, count)
	for i := range all {
		all[i] = make([]float32, size)
		_, _ = binary.Decode(b[4*i*size:], binary.LittleEndian, all[i]) // never fails: b is long enough
	}
	return all
}
