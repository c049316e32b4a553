package main

import (
	"context"
	"fmt"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// A backupIn names the copy of the store.
type backupIn struct {
	File string `arg:"" text:"" help:"the new file to write" zh:"要写入的新文件"`
}

// backupCommand writes a consistent copy of the store to a new file while servers keep
// running.
func backupCommand(ctx context.Context, sh *shell, in backupIn) error {
	svc, err := sh.service()
	if err != nil {
		return err
	}
	st, err := svc.Store()
	if err != nil {
		return err
	}
	if err := st.Backup(ctx, in.File); err != nil {
		return &ops.Error{Code: ops.Failed, Field: "file", Message: lang.Said(err), Fix: lang.Text{EN: "name a file that does not exist yet, in a folder that you may write", ZH: "请指定可写目录中尚不存在的文件"}}
	}
	fmt.Fprintln(sh.out, lang.Text{EN: "written: %s. To restore it: stop the servers, replace state.db by it, remove the -wal and -shm files, and start the servers", ZH: "已写入：%s。恢复方法：停止服务，用它替换 state.db（并删除 -wal 与 -shm），再启动服务"}.With(in.File).In(sh.lang))
	return nil
}
