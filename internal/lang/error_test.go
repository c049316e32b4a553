package lang_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

func TestAnErrorSaysTheSameInBothLanguages(t *testing.T) {
	_, missing := os.Open(filepath.Join(t.TempDir(), "x"))
	var at *fs.PathError
	require.ErrorAs(t, missing, &at)
	path := at.Path
	one := lang.Text{EN: "job %s: %s", ZH: "作业 %[1]s：%[2]s"}.Err("7", context.DeadlineExceeded)
	require.ErrorIs(t, one, context.DeadlineExceeded, "the errors among its values are what it wraps")
	for _, tt := range []struct {
		name   string
		err    error
		en, zh string
	}{
		{"of our own", one, "job 7: context deadline exceeded", "作业 7：超过时限"},
		{"without values, where a percent sign is one", lang.Text{EN: "100 % full", ZH: "100 % 已满"}.Err(), "100 % full", "100 % 已满"},
		{"of the system", missing, path + ": no such file or directory", path + "：没有这个文件或目录"},
		{"of ours in another's", fmt.Errorf("store: %w", one), "store: job 7: context deadline exceeded", "store: 作业 7：超过时限"},
		{"of the system in ours in ours", lang.Text{EN: "logs: %s", ZH: "日志：%s"}.Err(missing), "logs: " + path + ": no such file or directory", "日志：" + path + "：没有这个文件或目录"},
		{"wrapped out of sight", fmt.Errorf("%w (twice)", one), "job 7: context deadline exceeded (twice)", "job 7: context deadline exceeded (twice)"},
		{"several", errors.Join(one, context.Canceled), "job 7: context deadline exceeded\ncontext canceled", "作业 7：超过时限\n已被取消"},
		{"another program's", errors.New("sbatch: no"), "sbatch: no", "sbatch: no"},
		{"that cannot be compared", many{"a"}, "many", "many"},
	} {
		require.Equal(t, lang.Text{EN: tt.en, ZH: tt.zh}, lang.Said(tt.err), tt.name)
	}
}

type many []string

func (many) Error() string { return "many" }

func TestAValueIsSetInEachLanguagesWords(t *testing.T) {
	node := lang.Text{EN: "%d nodes", ZH: "%d 个节点"}.With(2)
	require.Equal(t, lang.Text{EN: "gpt has 2 nodes", ZH: "2 个节点属于 gpt"}, lang.Text{EN: "%s has %s", ZH: "%[2]s属于 %[1]s"}.With("gpt", node).With())
	require.Equal(t, "only", lang.Text{EN: "only"}.In(lang.ZH), "English where there is no Chinese")
}
