package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/megatron-ops/megatron-ops/internal/demo"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// demoCommand walks through the main job in a folder of its own, which is
// removed afterwards.
func demoCommand(ctx context.Context, sh *shell, words []string) error {
	if len(words) > 0 {
		return &ops.Error{Code: ops.BadInput, Field: words[0], Message: lang.Text{EN: "demo takes no words", ZH: "demo 不带参数"}}
	}
	dir, err := os.MkdirTemp("", "megatron-ops-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
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
		return &ops.Error{Code: ops.Failed, Message: lang.Said(err), Fix: lang.Text{EN: "please report it with what is above", ZH: "请附上以上输出报告该问题"}}
	}
	fmt.Fprintln(sh.out)
	return nil
}
