package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/recording"
)

// recordCommand writes a site's own Slurm output, disguised, to a folder that can be
// attached to a report.
func recordCommand(ctx context.Context, sh *shell, words []string) error {
	dir := "megatron-ops-recording"
	rest, err := flags("record", words, func(f *flag.FlagSet) { f.StringVar(&dir, "dir", dir, "") })
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return &ops.Error{Code: ops.BadInput, Field: rest[0], Message: lang.Text{EN: "record does not accept %q", ZH: "record 不认识 %q"}.With(rest[0]), Fix: lang.Text{EN: "record --dir FOLDER, and --cluster NAME", ZH: "用法：record --dir FOLDER，可加 --cluster NAME"}}
	}
	call, err := sh.call()
	if err != nil {
		return err
	}
	recorder, ok := call.Clusters[call.Default].(interface {
		Record(context.Context) []recording.Answer
	})
	if !ok {
		return &ops.Error{Code: ops.BadInput, Field: "cluster", Message: lang.Text{EN: "%s is not a Slurm cluster: there is nothing to record", ZH: "%s 不是 Slurm：没有可记录的内容"}.With(call.Default), Fix: lang.Text{EN: "--cluster slurm, or another Slurm cluster", ZH: "请用 --cluster slurm，或其他 Slurm 集群"}}
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // meant to be shared
		return &ops.Error{Code: ops.BadInput, Field: "dir", Message: lang.Said(err), Fix: lang.Text{EN: "--dir must name a folder that does not exist yet", ZH: "--dir 须是尚不存在的目录"}}
	}
	all := recorder.Record(ctx)
	doc := view.Doc{
		Title: fmt.Sprintf(lang.Text{EN: "recorded %s in %s", ZH: "已将 %s 的输出记录到 %s"}.In(sh.lang), call.Default, dir),
		Tone:  view.Good,
		Sections: []view.Section{{Text: lang.Text{
			EN: "Names of people, accounts, machines, folders and jobs are replaced, and all other free text. Look the files over before you attach them to a report.",
			ZH: "用户、账户、机器、目录、作业的名称以及其他自由文本均已替换。附到报告之前请先自行检查这些文件。",
		}.In(sh.lang)}},
	}
	files := view.Section{}
	for _, r := range all {
		if r.Text != "" {
			if err := os.WriteFile(filepath.Join(dir, r.Name), []byte(r.Text), 0o644); err != nil { //nolint:gosec // as above
				return err
			}
		}
		files.Items = append(files.Items, fmt.Sprintf("%s: %d bytes, exit %d", r.Name, len(r.Text), r.Code))
	}
	list, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "asked.json"), append(list, '\n'), 0o644); err != nil { //nolint:gosec // as above
		return err
	}
	doc.Sections = append(doc.Sections, files)
	if sh.json {
		return sh.printJSON(map[string]any{"dir": dir, "recordings": all})
	}
	return sh.draw(doc)
}
