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

// A demoIn names the folder to create in place of a demonstration.
type demoIn struct {
	Furnish string `help:"a new folder for the tutorial: a specification, and stand-ins for Megatron-LM and uv" zh:"为教程新建目录：作业规格，以及 Megatron-LM 与 uv 的替身"`
}

// demoCommand demonstrates the main job in a temporary folder. With --furnish it
// creates such a folder and leaves the steps to the person.
func demoCommand(ctx context.Context, sh *shell, in demoIn) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if in.Furnish != "" {
		return furnish(sh, in.Furnish, []string{self, demoLaunchWord})
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
func furnish(sh *shell, folder string, self []string) error {
	dir, err := filepath.Abs(folder)
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
	}.With(folder).In(sh.lang))
	return nil
}
