package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/megatron-ops/megatron-ops/internal/demo"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// demoCommand demonstrates the main job in a temporary folder. With --furnish it
// creates such a folder and leaves the steps to the person.
func demoCommand(ctx context.Context, sh *shell, words []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if len(words) > 0 && words[0] == "--furnish" {
		return furnish(sh, words[1:], []string{self, demoLaunchWord})
	}
	if len(words) > 0 {
		return ops.InputError(words[0],
			lang.Text{EN: "demo accepts only --furnish FOLDER", ZH: "demo 只接受 --furnish 目录"},
			lang.Text{EN: "megatron-ops demo, or megatron-ops demo --furnish try", ZH: "megatron-ops demo，或 megatron-ops demo --furnish try"})
	}
	dir, err := os.MkdirTemp("", "megatron-ops-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, value := range map[string]string{"MEGATRON_OPS_STATE_DIR": dir + "/state", "MEGATRON_OPS_CLUSTER": localCluster, "MEGATRON_OPS_CONFIG": ""} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	tour := demo.Tour{
		Dir: dir, Out: sh.out, Self: []string{self, demoLaunchWord},
		Do: func(ctx context.Context, args []string, out io.Writer) int {
			return run(ctx, append([]string{"--lang", string(sh.lang)}, args...), streams{in: sh.in, out: out, err: out})
		},
	}
	if err := tour.Run(ctx); err != nil {
		return &ops.Error{Code: ops.Failed, Message: lang.Said(err), Fix: lang.Text{EN: "please report this with the output above", ZH: "请附上以上输出报告该问题"}}
	}
	fmt.Fprintln(sh.out)
	return nil
}

// furnish creates the demo's folder: a specification with two mistakes, and stand-ins
// for uv and Megatron-LM.
func furnish(sh *shell, words, self []string) error {
	if len(words) != 1 {
		return ops.InputError("--furnish", lang.Text{EN: "demo --furnish FOLDER: a new folder", ZH: "demo --furnish 目录：新目录的名字"}, lang.Text{EN: "for example: megatron-ops demo --furnish try", ZH: "例如 megatron-ops demo --furnish try"})
	}
	dir, err := filepath.Abs(words[0])
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return &ops.Error{Code: ops.BadInput, Field: "--furnish", Message: lang.Said(err), Fix: lang.Text{EN: "name a folder that does not exist yet", ZH: "请指定尚不存在的目录"}}
	}
	if err := demo.Furnish(dir, self); err != nil {
		return err
	}
	fmt.Fprintln(sh.out, lang.Text{
		EN: "%s holds gpt-8b.yaml, Megatron-LM (a stand-in) and bin/uv (a stand-in). Go on with:\n  cd %[1]s && export PATH=$PWD/bin:$PATH MEGATRON_OPS_CLUSTER=local",
		ZH: "%s 中有 gpt-8b.yaml、Megatron-LM（替身）和 bin/uv（替身）。接着执行：\n  cd %[1]s && export PATH=$PWD/bin:$PATH MEGATRON_OPS_CLUSTER=local",
	}.With(words[0]).In(sh.lang))
	return nil
}
