package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// backupCommand writes a consistent copy of the store to a new file while servers keep
// running.
func backupCommand(ctx context.Context, sh *shell, words []string) error {
	words, err := flags("backup", words, func(*flag.FlagSet) {})
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return ops.InputError("file", lang.Text{EN: "backup FILE: the new file to write", ZH: "backup 文件：要写入的新文件"}, lang.Text{EN: "backup state-2026-11-21.db", ZH: "例如 backup state-2026-11-21.db"})
	}
	svc, err := sh.service()
	if err != nil {
		return err
	}
	st, err := svc.Store()
	if err != nil {
		return err
	}
	if err := st.Backup(ctx, words[0]); err != nil {
		return &ops.Error{Code: ops.Failed, Field: "file", Message: lang.Said(err), Fix: lang.Text{EN: "name a file that does not exist yet, in a folder that you may write", ZH: "请指定可写目录中尚不存在的文件"}}
	}
	fmt.Fprintln(sh.out, lang.Text{EN: "written: %s. To restore it: stop the servers, replace state.db by it, remove the -wal and -shm files, and start the servers", ZH: "已写入：%s。恢复方法：停止服务，用它替换 state.db（并删除 -wal 与 -shm），再启动服务"}.With(words[0]).In(sh.lang))
	return nil
}
