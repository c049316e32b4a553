// Package linkproof lets a person prove to Slack's bot which user of the cluster they
// are: by a file, named after a one-time code, that nobody else can have made. The
// proof is who made the content, not who owns the file: others can rename a file, but
// they cannot make a MUNGE credential over the code.
package linkproof

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/munge"
)

// Life is how long a code is valid.
const Life = 10 * time.Minute

// clockSkew is by how much the clocks of a file server and of this machine may differ.
const clockSkew = time.Minute

var codeForm = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// A Folder is where proofs are stored, on a file system that the person's login node
// and the server share.
type Folder struct {
	Dir string
	// Munge makes and opens the proofs; nil if the site has no munge. Then a proof is a
	// file that the person owns and that contains the code.
	Munge *munge.Service
}

// Refused says why an existing file proves nothing.
type Refused struct{ Why string }

func (e *Refused) Error() string { return "the proof is refused: " + e.Why }

// path returns the file of a code. It contains the code's hash, so that listing the
// folder does not reveal the code.
func (f Folder) path(code string) string {
	sum := sha256.Sum256([]byte("megatron-ops link " + code))
	return filepath.Join(f.Dir, "megatron-ops-link-"+base32.StdEncoding.EncodeToString(sum[:16])[:26])
}

// proofText is the content of a credential. It names this program, so that a credential
// for another program is no proof.
func proofText(code string) string { return "megatron-ops link " + code }

// Write proves that the user of this process was given the code. It replaces an earlier
// proof of the same person.
func (f Folder) Write(ctx context.Context, code string) error {
	code = strings.ToUpper(strings.TrimSpace(code))
	if !codeForm.MatchString(code) {
		return lang.Text{EN: "%q is not a code: copy the 26 letters that /megatron link shows", ZH: "%q 不是绑定代码：请复制 /megatron link 显示的 26 个字符"}.Err(code)
	}
	content := proofText(code)
	if f.Munge != nil {
		credential, err := f.Munge.Seal(ctx, content)
		if err != nil {
			return err
		}
		content = credential
	}
	path := f.path(code)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
	if errors.Is(err, fs.ErrExist) {
		if err = os.Remove(path); err != nil {
			return lang.Text{
				EN: "somebody has put a file in this code's place: ask for a new code with /megatron link (%s)",
				ZH: "该代码的位置上已有他人放置的文件：请用 /megatron link 重新获取代码（%s）",
			}.Err(err)
		}
		file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
	}
	if err != nil {
		return err
	}
	// The server reads the file as another user, whatever this person's umask is;
	// nobody else may write it.
	err = file.Chmod(0o644)
	if err == nil {
		_, err = io.WriteString(file, content)
	}
	return errors.Join(err, file.Close())
}

// Owner returns who has proved the code that was given at since. It returns
// fs.ErrNotExist while there is no proof, and a *Refused for a file that proves
// nothing.
func (f Folder) Owner(ctx context.Context, code string, since time.Time) (account.User, error) {
	if !codeForm.MatchString(code) {
		return account.User{}, &Refused{"it is for no code"}
	}
	if err := checkFolder(f.Dir); err != nil {
		return account.User{}, err
	}
	file, err := os.OpenFile(f.path(code), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return account.User{}, &Refused{"it is a link"}
	}
	if err != nil {
		return account.User{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return account.User{}, err
	}
	content, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil {
		return account.User{}, err
	}
	var uid int
	if f.Munge != nil {
		var text string
		if uid, text, err = f.Munge.Open(ctx, string(content)); err != nil {
			return account.User{}, &Refused{err.Error()}
		}
		content = []byte(text)
	} else if uid, err = soleWriter(info, since); err != nil {
		return account.User{}, err
	}
	if string(content) != proofText(code) {
		return account.User{}, &Refused{"it is over another text than the code"}
	}
	u, err := account.ByID(ctx, uid)
	if err != nil {
		return account.User{}, &Refused{err.Error()}
	}
	if u.UID == 0 {
		return account.User{}, &Refused{"root is nobody in particular"}
	}
	return u, nil
}

// soleWriter returns the owner of a file if nobody else can have written it since the
// code was given.
func soleWriter(info fs.FileInfo, since time.Time) (uid int, err error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.Mode().IsRegular():
		return 0, &Refused{"it is not a plain file"}
	case st.Nlink != 1:
		return 0, &Refused{"the file has further names"}
	case info.Mode().Perm()&0o022 != 0:
		return 0, &Refused{"others may write the file"}
	case info.ModTime().Before(since.Add(-clockSkew)) || info.ModTime().After(since.Add(Life+clockSkew)):
		return 0, &Refused{"the file was not written while the code was good"}
	}
	return int(st.Uid), nil
}

// checkFolder refuses a folder if others could replace files in it or in one of its
// parents: each must belong to root or to us, and nobody else may write it unless it is
// sticky.
func checkFolder(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return lang.Text{EN: "folder of link codes: %s", ZH: "绑定代码目录：%s"}.Err(err)
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		mine := ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
		open := info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0
		if !info.IsDir() || !mine || open {
			return lang.Text{
				EN: "folder of link codes %s: %s must be a folder of root's or of this server's that nobody else may write, or sticky (chmod 1777)",
				ZH: "绑定代码目录 %s：%s 须属于 root 或本服务且他人不可写，或带有粘滞位（chmod 1777）",
			}.Err(dir, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
