package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/job/detect"
)

// An initIn says where the profile goes.
type initIn struct {
	Yes   bool   `help:"do not ask: accept every proposal" zh:"不询问，接受所有建议"`
	As    string `help:"add the Slurm of SLURM_CONF to the file as a cluster of this name" zh:"把 SLURM_CONF 所指的 Slurm 以该名称加入文件"`
	File  string `default:"megatron-ops.yaml" help:"the file to write, - to show it; megatron-ops.yaml where left out" zh:"要写的文件，- 表示只显示；默认 megatron-ops.yaml"`
	Force bool   `help:"overwrite the file" zh:"覆盖已有文件"`
}

// initCommand examines the site, asks at a terminal what it cannot detect, and writes
// the site's profile.
func initCommand(ctx context.Context, sh *shell, in initIn) error {
	out, name := in.File, in.As
	if name != "" && !clusterName.MatchString(name) {
		return &ops.Error{Code: ops.BadInput, Field: "as", Message: lang.Text{EN: "%q is not a valid name of a cluster", ZH: "%q 不能用作集群名"}.With(name), Fix: lang.Text{EN: "letters, digits and -, such as prod", ZH: "字母、数字与 -，例如 prod"}}
	}
	have, err := os.ReadFile(out)
	if err == nil && !in.Force && out != "-" && name == "" {
		return &ops.Error{Code: ops.BadInput, Field: "file", Message: lang.Text{EN: "%s already exists", ZH: "%s 已存在"}.With(out), Fix: lang.Text{EN: "--force overwrites it, --as NAME adds this cluster to it, --file - shows the profile", ZH: "--force 覆盖它，--as NAME 把该集群加入其中，--file - 只显示配置"}}
	}
	bin, onPath := cluster.FindCommands(os.Environ())
	slurmHere := bin != ""
	if slurmHere && !onPath {
		sh.note("slurm_bin: ", fmt.Sprintf("%s (%s)", bin, lang.Text{EN: "sbatch is there and not on the PATH", ZH: "sbatch 在该目录中，但不在 PATH 中"}.In(sh.lang)))
		if err := os.Setenv("PATH", bin+":"+os.Getenv("PATH")); err != nil {
			return err
		}
	} else {
		bin = ""
	}
	probes := slices.DeleteFunc(detect.Probes(osUser(ops.Shell).User), func(p detect.Probe) bool {
		_, err := exec.LookPath(p.Argv[0])
		return err != nil
	})
	sh.note("", lang.Text{EN: "asking %s, at most %s …", ZH: "正在询问 %s，最多 %s……"}.With(programs(probes), probeTimeout).In(sh.lang))
	printed, silent := runProbes(ctx, probes, runProbe)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, s := range silent {
		sh.note(programs(s.probes)+": ", s.message().In(sh.lang))
	}
	said := map[string]string{}
	if !in.Yes && isTerminal(sh.in) {
		if err := sh.askAboutSite(ctx, printed, said); err != nil {
			return err
		}
	}
	site, found := detect.Site(printed, said)
	for _, f := range found {
		sh.note(f.Field+": ", fmt.Sprintf("%s (%s)", cmp.Or(f.Value, "-"), f.Why.In(sh.lang)))
	}
	switch {
	case slurmHere && printed["nodes"] == "":
		sh.note("", lang.Text{
			EN: "Slurm did not answer, so the profile lacks what Slurm offers: run `megatron-ops init` again once Slurm answers",
			ZH: "Slurm 没有回答，配置中缺少相应内容：待 Slurm 恢复后，请再次运行 `megatron-ops init`",
		}.In(sh.lang))
	case len(found) == 0:
		sh.note("", lang.Text{
			EN: "no Slurm answers here: the profile is empty, and jobs go to the embedded back end",
			ZH: "这里没有可用的 Slurm：配置为空，作业将在内置后端上运行",
		}.In(sh.lang))
	}
	text, err := profile(name, bin, site, have)
	if err != nil {
		return err
	}
	if out == "-" {
		_, err = sh.out.Write(text)
		return err
	}
	if err := os.WriteFile(out, text, 0o644); err != nil {
		return err
	}
	sh.note("", lang.Text{EN: "wrote %s", ZH: "已写入 %s"}.With(out).In(sh.lang))
	return nil
}

// note writes text after lead to standard error, wrapped to the terminal's width.
func (sh *shell) note(lead, text string) {
	fmt.Fprint(sh.err, view.Behind(lead, text, widthOf(sh.err)))
}

// askAboutSite asks what detection leaves open. Each question takes the answers before
// it into account: the partition decides which GPUs to ask about.
func (sh *shell) askAboutSite(ctx context.Context, printed, said map[string]string) error {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(sh.in); in.Scan(); {
			lines <- in.Text()
		}
	}()
	for asked := false; ; asked = true {
		_, found := detect.Site(printed, said)
		i := slices.IndexFunc(found, func(f detect.Finding) bool { return f.Asks })
		if i < 0 {
			return nil
		}
		if !asked {
			sh.note("", lang.Text{EN: "Enter accepts the value in brackets, - leaves the field empty.", ZH: "直接回车采用方括号中的值，输入 - 表示不填。"}.In(sh.lang))
		}
		f := found[i]
		fmt.Fprintln(sh.err)
		sh.note(f.Field+": ", f.Why.In(sh.lang))
		if len(f.Choices) > 1 {
			sh.note("  ", strings.Join(f.Choices, ", "))
		}
		fmt.Fprintf(sh.err, "[%s] ", view.Plainly(f.Value))
		line, ok := <-lines
		if !ok {
			fmt.Fprintln(sh.err)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return &ops.Error{Code: ops.Failed, Message: lang.Text{EN: "no answer, so nothing was written", ZH: "没有回答，因此没有写入任何内容"}, Fix: lang.Text{EN: "init --yes accepts what was detected", ZH: "init --yes 直接采用检测到的值"}}
		}
		switch answer := strings.TrimSpace(line); answer {
		case "":
			said[f.Field] = f.Value
		case "-":
			said[f.Field] = ""
		default:
			if why := f.Refuses(answer); why != (lang.Text{}) {
				sh.note("", why.In(sh.lang))
				continue
			}
			said[f.Field] = answer
		}
	}
}

// clusterName matches valid names of clusters.
var clusterName = lazy.New(`^[A-Za-z][A-Za-z0-9-]{0,31}$`)

// profile returns a configuration file that describes the site. Without name, the site
// applies to all clusters; otherwise it belongs to the cluster name, which profile adds
// to the file have. bin is the folder of Slurm's commands if they are not on the PATH.
func profile(name, bin string, site job.Site, have []byte) ([]byte, error) {
	const head = "# The site's profile: what a job specification may leave out. docs/configuration.md lists every key.\n"
	if name == "" {
		all := config.Config{Site: site}
		if bin != "" {
			all.Cluster = slurmCluster
			all.Clusters = map[string]config.Cluster{slurmCluster: {Kind: "cli", SlurmBin: bin}}
		}
		text, err := yaml.MarshalWithOptions(all, yaml.UseJSONMarshaler())
		return append([]byte(head), text...), err
	}
	one := config.Config{Clusters: map[string]config.Cluster{name: {Kind: "cli", SlurmConf: os.Getenv("SLURM_CONF"), SlurmBin: bin, Site: site}}}
	text, err := yaml.MarshalWithOptions(one, yaml.UseJSONMarshaler())
	if err != nil {
		return nil, err
	}
	entry := bytes.TrimPrefix(text, []byte("clusters:\n"))
	var all []byte
	switch at := clustersLine.FindStringIndex(string(have)); {
	case at != nil: // keep the file's content, including its comments
		all = slices.Concat(have[:at[1]], entry, have[at[1]:])
	case len(have) > 0:
		all = slices.Concat(bytes.TrimRight(have, "\n"), []byte("\n"), text)
	default:
		all = append([]byte(head), text...)
	}
	if err := config.Check(all); err != nil {
		return nil, &ops.Error{Code: ops.BadInput, Field: "as", Message: lang.Said(err), Fix: lang.Text{EN: "choose another name, or fix the file; --file - shows this cluster alone", ZH: "请换一个名称，或修正该文件；--file - 只显示该集群"}}
	}
	return all, nil
}

var clustersLine = lazy.New(`(?m)^clusters:[ \t]*\n`)
