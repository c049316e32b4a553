package eval_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/knowledge/eval"
)

func TestModelIsScoredWithAndWithoutSkills(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Set MASTER_PORT to 4711.\"}}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(srv.Close)
	m := &knowledge.Model{BaseURL: srv.URL, Key: "k", Name: "m"}
	qs := []eval.Question{{ID: "1", Lang: "en", Kind: "fact", Q: "what is the default MASTER_PORT", Must: [][]string{{"29500"}}}}

	alone, err := eval.Run(t.Context(), eval.Alone{Model: m}, qs)
	require.NoError(t, err)
	require.Equal(t, 0, alone.Passed, "what it makes up by itself is wrong")

	with, err := eval.Run(t.Context(), knowledge.New(knowledge.Options{Model: m}), qs)
	require.NoError(t, err)
	require.Equal(t, 1, with.Passed, "with the skills its number is withheld and the answer right")

	srv.Close()
	gone, err := eval.Run(t.Context(), eval.Alone{Model: m}, qs)
	require.NoError(t, err)
	require.Equal(t, 0, gone.Passed, "a model that is gone has answered nothing")
	require.Equal(t, []string{"missing 29500", "declined"}, []string{alone.Failed[0].Why, gone.Failed[0].Why})
	require.InDelta(t, 0.25, eval.Score{Passed: 1, Total: 4}.Share(), 1e-9)
}
