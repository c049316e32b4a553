package ops

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestPagesHaveAddressesWhereBrowsersReachThem(t *testing.T) {
	t.Parallel()
	none := &Service{}
	require.Empty(t, none.JobPage("yard", "7")+none.PipelinePage("ada", "p")+none.ApprovalsPage())
	for _, at := range []string{"https://ops.example", "https://ops.example/"} {
		s := &Service{PageURL: at}
		require.Equal(t, "https://ops.example/web/jobs/a%2Fb/7_1", s.JobPage("a/b", "7_1"))
		require.Equal(t, "https://ops.example/web/pipelines/ada/a%20b", s.PipelinePage("ada", "a b"))
		require.Equal(t, "https://ops.example/web/approvals", s.ApprovalsPage())
	}
}

func TestASpecificationHasTheSiteOfItsCluster(t *testing.T) {
	t.Parallel()
	c := &Call{Service: &Service{Default: "yard"}}
	require.Zero(t, c.SiteOf(job.Spec{Cluster: "b"}))
	c.Sites = func(cluster string) job.Site { return job.Site{Presets: map[string]map[string]string{cluster: nil}} }
	require.Contains(t, c.SiteOf(job.Spec{Cluster: "b"}).Presets, "b")
	require.Contains(t, c.SiteOf(job.Spec{}).Presets, "yard")
}

// A waiting caller hears at once what is going on; without a listener nothing happens.
func TestALongCallSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	(&Call{}).During("reading")()
	var heard []string
	c := &Call{Progress: func(done, total int, what string) { heard = append(heard, what) }}
	c.During("reading")()
	c.Step(1, 2, "judging")
	require.Equal(t, []string{"reading", "judging"}, heard)
}

func TestAllFieldsThatAreWrongAreSaid(t *testing.T) {
	t.Parallel()
	e := AsError(FieldErrors(job.FieldErrors{
		{Field: "nodes", Value: "-1", Msg: lang.Text{EN: "is less than 1", ZH: "小于 1"}, Fix: lang.Text{EN: "give 1 or more", ZH: "请写 1 或更大"}},
		{Field: "name", Msg: lang.Text{EN: "is missing", ZH: "缺失"}},
	}))
	require.Equal(t, `nodes: "-1" is less than 1`, e.Error())
	require.Equal(t, lang.Text{EN: "give 1 or more", ZH: "请写 1 或更大"}, e.Fix)
	require.Equal(t, BadInput, e.Code)
	require.Len(t, e.More, 1)
	require.Equal(t, "name: is missing", e.More[0].Error())
	long := FieldErrors(job.FieldErrors{{Field: "time", Value: strings.Repeat("x", 100_000), Msg: lang.Same("is no time")}})
	require.Less(t, len(long.Error()), 300)
	require.Equal(t, "not YAML", FieldErrors(errors.New("not YAML")).Error())
}

// trainIn is an input that accepts Megatron's arguments after --.
type trainIn struct {
	Nodes int `json:"nodes"`
}

func (*trainIn) MegatronArgs() {}

// A flag of Megatron's in front of -- is known, but in the wrong place.
func TestAFlagOfMegatronsIsSaidToBeOne(t *testing.T) {
	t.Parallel()
	op := Define(Op{Name: "train"}, func(context.Context, *Call, trainIn) (int, error) { return 0, nil })
	for words, fix := range map[string]string{
		"--tensor-model-parallel-size 4":   "megatron-ops train … -- --tensor-model-parallel-size 4, or in the specification's args: [--tensor-model-parallel-size, 4]",
		"--tensor-model-parallel-size=4":   "-- --tensor-model-parallel-size 4, or",
		"--tensor-model-parallel-size --x": "-- --tensor-model-parallel-size, or",
		"--bf16 yes":                       "-- --bf16, or",
		"--nodes 2 --bf16":                 "-- --bf16, or",
		"--frobnicate 4":                   "train takes --nodes",
		"--nods 4":                         "did you mean --nodes?",
	} {
		err := AsError(op.Words(op.NewIn(), strings.Fields(words)))
		require.Contains(t, err.Fix.EN, fix, words)
		require.Equal(t, BadInput, err.Code)
	}
}
