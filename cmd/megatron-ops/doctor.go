package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// A check is one line of the doctor's output.
type check struct {
	what string
	err  error
	fix  string
	// note is what to say about a check that passed.
	note string
}

// The results of a check, padded to the same width.
var (
	passed = lang.Text{EN: "ok    ", ZH: "正常  "}
	failed = lang.Text{EN: "wrong ", ZH: "有误  "}
)

// A doctorIn says how much doctor prints.
type doctorIn struct {
	Report bool `help:"one text for a ticket, without secrets" zh:"输出可附在工单中的一份文本，不含秘密"`
}

// doctor checks what the program depends on and says how to correct it. With --report
// it prints everything as one text without secrets.
func doctor(ctx context.Context, sh *shell, in doctorIn) error {
	cfg, svc, checks := sh.examine(ctx)
	if in.Report {
		return sh.report(ctx, cfg, svc, checks)
	}
	return sh.drawChecks(checks)
}

// examine runs the checks. If the service cannot be set up, that is one of the checks
// and svc is nil.
func (sh *shell) examine(ctx context.Context) (cfg config.Config, svc *ops.Service, checks []check) {
	cfg, err := loadConfig()
	word := func(en, zh string) string { return lang.Text{EN: en, ZH: zh}.In(sh.lang) }
	read := cfg.Path
	if read == "" {
		read = word("no file, so what is built in holds; `megatron-ops init` writes one", "没有配置文件，采用内置设置；`megatron-ops init` 可生成")
	}
	checks = append(checks, check{what: word("configuration", "配置文件"), err: err, note: read})
	if svc, err = sh.service(); err != nil {
		return cfg, nil, append(checks, check{what: word("set-up", "初始化"), err: err})
	}
	writable := word("MEGATRON_OPS_STATE_DIR names a directory that you may write", "用 MEGATRON_OPS_STATE_DIR 指定一个可写的目录")
	state, err := config.StateDir(os.Getenv)
	if info, statErr := os.Stat(state); err == nil && statErr == nil && !info.IsDir() {
		err = lang.Text{EN: "%s: %s", ZH: "%s：%s"}.Err(state, syscall.ENOTDIR)
	}
	directory := check{what: word("state directory", "状态目录"), err: err, fix: writable, note: state}
	st, err := svc.Store()
	if err == nil {
		err = st.Ping(ctx)
	}
	if err == nil || directory.err != nil { // else the store's error tells what is wrong with the directory, and what would work
		checks = append(checks, directory)
	}
	checks = append(checks, check{what: word("store", "数据库"), err: err})
	if err == nil && store.OnNetworkFS(state) {
		checks = append(checks, check{
			what: word("state on a network file system", "状态目录位于网络文件系统"),
			note: word("the shell uses a rollback journal; serve needs a local disk or PostgreSQL", "shell 使用回滚日志；serve 需要本地磁盘或 PostgreSQL"),
		})
	}
	if svc.Unchosen {
		fix := lang.Text{EN: "module load slurm, or --cluster local to run jobs on this machine", ZH: "执行 module load slurm；或用 --cluster local 在本机运行作业"}
		if bin, _ := cluster.FindCommands(os.Environ()); bin != "" {
			fix = lang.Text{
				EN: "sbatch is in %[1]s: `megatron-ops init` writes `slurm_bin: %[1]s` into the configuration; or put it on the PATH",
				ZH: "sbatch 位于 %[1]s：`megatron-ops init` 会把 `slurm_bin: %[1]s` 写入配置；也可把它加入 PATH",
			}.With(bin)
		}
		checks = append(checks, check{
			what: "sbatch", err: lang.Text{EN: "not on the PATH, and no cluster is configured: nothing is submitted", ZH: "不在 PATH 中，也没有配置集群：不会提交任何作业"}.Err(),
			fix: fix.In(sh.lang),
		})
	}
	names := []string{svc.Default}
	for name := range cfg.Clusters {
		if name != svc.Default {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	for _, name := range names {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		_, err := svc.Clusters[name].Jobs(ctx, slurm.Filter{User: osUser(ops.Shell).User})
		cancel()
		note := svc.Clusters[name].Kind()
		if cl, ok := svc.Clusters[name].(*cluster.CLI); ok && note == "cli" {
			if bin, _ := cluster.FindCommands(cl.Environ()); bin != "" {
				note += ", " + bin
			}
		}
		checks = append(checks, check{what: word("cluster ", "集群 ") + name, err: err, fix: slurm.FixOf(err).In(sh.lang), note: note})
	}
	for _, program := range []string{"uv", "git"} {
		c := check{what: program}
		if _, err := exec.LookPath(program); err != nil {
			c.note = word("not on this machine; fine where the nodes have it", "本机没有；计算节点上有即可")
		}
		checks = append(checks, c)
	}
	if slackConfigured() && st != nil {
		var b *bot.Bot
		slackConfig, err := sh.slackConfig(cfg, svc, st)
		if err == nil {
			b, err = bot.New(slackConfig)
		}
		if err != nil {
			checks = append(checks, check{what: "Slack", err: err, fix: word("docs/slack.md has the steps", "步骤见 docs/slack.md")})
		} else {
			for _, c := range b.Doctor(ctx) {
				var err error
				if !c.OK {
					err = c.Detail.Err()
				}
				checks = append(checks, check{what: c.Name.In(sh.lang), err: err, fix: c.Fix.In(sh.lang), note: c.Detail.In(sh.lang)})
			}
		}
	}
	return cfg, svc, checks
}

// A checkRow is a check as JSON has it.
type checkRow struct {
	Check   string `json:"check"`
	OK      bool   `json:"ok"`
	Note    string `json:"note,omitempty"`
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

func (sh *shell) checkRows(checks []check) []checkRow {
	rows := []checkRow{}
	for _, c := range checks {
		r := checkRow{Check: c.what, OK: c.err == nil, Note: c.note}
		if c.err != nil {
			r.Note, r.Problem, r.Fix = "", lang.Said(c.err).In(sh.lang), c.fix
		}
		rows = append(rows, r)
	}
	return rows
}

// drawChecks prints the checks. If one failed, the command ends with the exit code for
// something found.
func (sh *shell) drawChecks(checks []check) (err error) {
	if sh.json {
		err = sh.printJSON(map[string]any{"checks": sh.checkRows(checks)})
	} else {
		err = sh.draw(view.Doc{Sections: []view.Section{{Items: sh.checkLines(checks)}}})
		fmt.Fprintln(sh.out)
	}
	if err == nil && slices.ContainsFunc(checks, func(c check) bool { return c.err != nil }) {
		err = found
	}
	return err
}

func (sh *shell) checkLines(checks []check) (lines []string) {
	for _, c := range checks {
		colon := lang.Text{EN: ": ", ZH: "："}.In(sh.lang)
		item := passed.In(sh.lang) + c.what
		if c.note != "" {
			item += colon + c.note
		}
		if c.err != nil {
			item = failed.In(sh.lang) + c.what + colon + lang.Said(c.err).In(sh.lang)
			if c.fix != "" {
				item += "\n      " + lang.Text{EN: "try: ", ZH: "建议："}.In(sh.lang) + c.fix
			}
		}
		lines = append(lines, item)
	}
	return lines
}
