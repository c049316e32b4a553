package knowledge_test

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// query is a word that no card contains. The embedding model gives it nearly the same
// vector as the card with the title marked.
const query, marked = "xylotrim", "JobHoldMaxRequeue"

// embeddings serves an embedding model and counts its requests in asked.
func embeddings(t *testing.T, asked *atomic.Int32) *knowledge.Embedder {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var in struct {
			Input []string `json:"input"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		type datum struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var out struct {
			Data []datum `json:"data"`
		}
		for i, text := range in.Input {
			v := make([]float32, 34)
			v[0] = 1
			if strings.Contains(text, marked) || strings.Contains(text, query) {
				v[1] = 100
			}
			for _, word := range strings.Fields(text) {
				h := fnv.New32a()
				h.Write([]byte(word))
				v[2+h.Sum32()%32]++
			}
			out.Data = append(out.Data, datum{i, v})
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(srv.Close)
	return &knowledge.Embedder{BaseURL: srv.URL, Key: "k", Name: "e"}
}

func titles(list []knowledge.Passage) (all []string) {
	for _, p := range list {
		all = append(all, p.Title)
	}
	return all
}

func TestVectorsFindWhatTheIndexDoesNot(t *testing.T) {
	t.Parallel()
	require.NotContains(t, titles(knowledge.New(knowledge.Options{}).Search(t.Context(), query, "", 5)), marked)
	var asked atomic.Int32
	e := embeddings(t, &asked)
	near := knowledge.New(knowledge.Options{Embedder: e}).Search(t.Context(), query, "", 5)
	require.Contains(t, titles(near), marked)
	for i := range near[1:] {
		require.LessOrEqual(t, near[i+1].Score, near[i].Score, "best first")
	}
}

func TestVectorsAreMadeOnceAndKept(t *testing.T) {
	t.Parallel()
	kept := map[string][]byte{}
	load := func(_ context.Context, key string) ([]byte, bool) { b, ok := kept[key]; return b, ok }
	save := func(_ context.Context, key string, b []byte) error { kept[key] = b; return nil }
	var asked atomic.Int32
	e := embeddings(t, &asked)
	e.Load, e.Save = load, save
	a := knowledge.New(knowledge.Options{Embedder: e})
	a.Warm()
	made := asked.Load()
	require.Greater(t, made, int32(5), "the cards, some at a time")
	first := a.Search(t.Context(), "why is my job pending", "", 3)
	require.Equal(t, made+1, asked.Load(), "then the question alone")
	require.Len(t, kept, 1)

	again := embeddings(t, &asked)
	again.Load, again.Save = load, save
	asked.Store(0)
	require.Equal(t, first, knowledge.New(knowledge.Options{Embedder: again}).Search(t.Context(), "why is my job pending", "", 3))
	require.Equal(t, int32(1), asked.Load(), "another process reads what was kept")

	for key := range kept {
		kept[key] = []byte("short")
	}
	broken := embeddings(t, &asked)
	broken.Load, broken.Save = load, save
	require.Equal(t, first, knowledge.New(knowledge.Options{Embedder: broken}).Search(t.Context(), "why is my job pending", "", 3),
		"what cannot be read is made again")
}

func TestWithoutVectorsTheIndexRanks(t *testing.T) {
	t.Parallel()
	plain := knowledge.New(knowledge.Options{}).Search(t.Context(), "why is my job pending", "", 3)
	for name, answer := range map[string]http.HandlerFunc{
		"server error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"no vectors":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":[]}`)) },
		"other sizes": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`))
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(answer)
			t.Cleanup(srv.Close)
			a := knowledge.New(knowledge.Options{Embedder: &knowledge.Embedder{BaseURL: srv.URL, Key: "k", Name: "e"}})
			require.Equal(t, plain, a.Search(t.Context(), "why is my job pending", "", 3))
		})
	}
}
