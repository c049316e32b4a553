package cluster

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// sendByRsync copies the files to the folder stage on the host. A later call continues
// a transfer that broke off.
func (s *sshRunner) sendByRsync(ctx context.Context, tree *SourceTree, files []SourceFile, stage string) error {
	var names strings.Builder
	for _, f := range files {
		names.WriteString("./" + f.Path + "\x00")
	}
	var rsh []string
	for _, w := range s.options() {
		if strings.ContainsAny(w, " '\"") { // the quoting that rsync's -e understands
			w = "'" + strings.ReplaceAll(w, "'", "''") + "'"
		}
		rsh = append(rsh, w)
	}
	host := s.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	r, err := localRunner{}.run(ctx, command{
		argv: []string{
			"rsync", "--links", "--times", "--executability", "--compress", "--partial", "--protect-args", "--from0", "--files-from=-",
			"--rsh=" + strings.Join(rsh, " "), "--", tree.Dir + "/", host + ":" + stage + "/",
		},
		env: s.environ(), stdin: names.String(), limit: transferLimit,
	})
	return transferError("rsync", r, err)
}

// sendByTar copies the files as a tar archive, for hosts without rsync at one end.
func (s *sshRunner) sendByTar(ctx context.Context, tree *SourceTree, files []SourceFile, stage string) error {
	archive, err := unnamedFile(stage + "\n")
	if err != nil {
		return localError("tar", lang.Said(err))
	}
	defer archive.Close()
	if _, err = archive.Seek(0, io.SeekEnd); err == nil {
		err = tree.archive(archive, files)
	}
	if err == nil {
		_, err = archive.Seek(0, io.SeekStart)
	}
	if err != nil {
		return localError("tar", lang.Said(err))
	}
	const unpack = `exec /bin/sh -c 'IFS= read -r d && cd -- "$d" && exec tar --no-same-owner --no-same-permissions -xf -'`
	r, err := localRunner{}.run(ctx, command{argv: s.args(unpack), env: s.environ(), input: archive, limit: transferLimit})
	return transferError("tar", r, err)
}

func (t *SourceTree) archive(to io.Writer, files []SourceFile) error {
	w := tar.NewWriter(to)
	for _, f := range files {
		h := &tar.Header{Name: "./" + f.Path, Mode: 0o644, Format: tar.FormatGNU, Typeflag: tar.TypeReg, Size: f.Bytes}
		if f.Exec {
			h.Mode = 0o755
		}
		if f.Link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if f.Link != "" {
			continue
		}
		in, err := t.root.Open(f.Path)
		if err != nil {
			return err
		}
		_, err = io.CopyN(w, in, f.Bytes)
		if err = errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	return w.Close()
}

// transferError returns the error of a transfer that failed, or nil.
func transferError(by string, r result, err error) error {
	if err == nil && r.code == 0 {
		return nil
	}
	said := strings.TrimSpace(r.stderr)
	if err != nil {
		said = err.Error()
	}
	return &slurm.Error{
		Op: "sync", Kind: slurm.Unreachable,
		Msg: lang.Text{EN: "the transfer by %s broke off, and the tree on the cluster is unchanged: %s", ZH: "%s 传输中断，那边的代码目录保持原样：%s"}.With(by, cmp.Or(said, "exit status "+strconv.Itoa(r.code))),
		Fix: lang.Text{EN: "sync again", ZH: "请再次 sync"},
	}
}

// checkStage verifies that the files in the folder stage equal the local ones.
func (c *CLI) checkStage(ctx context.Context, files []SourceFile, stage string) error {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	_, _, found, err := c.inspect(ctx, stage, paths)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !f.matches(found[f.Path]) {
			return &slurm.Error{
				Op: "sync", Kind: slurm.Unreachable,
				Msg: lang.Text{EN: "%s differs after the transfer, and the tree on the cluster is unchanged: the file was changed meanwhile, or the cluster's disk is full", ZH: "%s 到达后与读取时不一致，那边的代码目录保持原样：期间文件被修改，或那边磁盘已满"}.With(strconv.Quote(f.Path)),
				Fix: lang.Text{EN: "sync again", ZH: "请再次 sync"},
			}
		}
	}
	return nil
}

// lockScript holds a lock on the tree on the host for as long as its standard input is
// open. Where another process holds the lock, it prints that holder's name. On a file
// system without locks it goes on without a lock.
const lockScript = `exec /bin/sh -c 'IFS= read -r d; IFS= read -r w; k="$d/.megatron-ops"; umask 022
mkdir -p -- "$k" && ! [ -L "$k" ] && ! [ -L "$k/lock" ] && exec 9>>"$k/lock" || exit 74
flock -n 9; case $? in 0) printf "%s\n" "$w" >"$k/lock";; 1) echo "busy $(head -n 1 "$k/lock")"; exit 0;; esac
echo held; exec cat >/dev/null'`

// lockTree takes the lock on a tree on the host. The lock ends with this process at the
// latest.
func (s *sshRunner) lockTree(ctx context.Context, dir, by string) (release func(), err error) {
	argv := s.args(lockScript)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = s.environ()
	if path := LookIn(cmd.Env, argv[0]); path != "" {
		cmd.Path, cmd.Err = path, nil
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said := &capped{left: maxStderr}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, localError("ssh", lang.Said(err))
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, localError("ssh", lang.Said(err))
	}
	end := func() {
		in.Close()
		kill := time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		_ = cmd.Wait()
		kill.Stop()
	}
	stop := context.AfterFunc(ctx, func() { in.Close(); _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	fmt.Fprintf(in, "%s\n%s\n", dir, strings.ReplaceAll(by, "\n", " "))
	line, _ := bufio.NewReader(out).ReadString('\n')
	line = strings.TrimSpace(line)
	if line == "held" {
		return func() { stop(); end() }, nil
	}
	stop()
	end()
	if who, busy := strings.CutPrefix(line, "busy"); busy {
		return nil, &slurm.Error{
			Op: "sync", Kind: slurm.Rejected, Msg: lang.Text{EN: "another sync of %s is under way: %s", ZH: "%s 正在被另一次 sync 传输：%s"}.With(dir, strings.TrimSpace(who)),
			Fix: lang.Text{EN: "wait until it has ended", ZH: "请等待其结束"},
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	why := strings.TrimSpace(said.String())
	return nil, &slurm.Error{
		Op: "sync", Kind: sshKind(why),
		Msg: lang.Text{EN: "%s: no lock could be taken: %s", ZH: "%s：无法加锁：%s"}.With(filepath.Join(dir, syncFolder), why),
	}
}
