package store

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A head is the last entry of the audit trail that this process's state folder knows.
// It is stored and signed outside of the database: whoever removes entries from the end
// of the trail must also change this file.
type head struct {
	mu  sync.Mutex
	dir string // empty: no head is kept
}

// A headLine is the content of the file.
type headLine struct {
	ID     int64  `json:"id"`
	Digest string `json:"digest"`
	MAC    string `json:"mac"`
}

// errHead says that the file with the head of the audit trail was tampered with.
var errHead = lang.Text{EN: "the signed head of the audit trail was changed", ZH: "审计记录的签名头已被改动"}.Err()

// KeepHead keeps the head of the audit trail in a folder that only this account can
// write, as audit.head and the key audit.key, both with mode 0600.
func (s *Store) KeepHead(dir string) { s.head.dir = dir }

func (h *head) file() string { return filepath.Join(h.dir, "audit.head") }

// key returns the key that signs heads. It is created when the first head is signed.
func (h *head) key() ([]byte, error) {
	file := filepath.Join(h.dir, "audit.key")
	key, err := os.ReadFile(file)
	if err == nil && len(key) >= sha256.Size {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key = make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails: the program would end
	return key, replaceFile(file, key)
}

func (l headLine) mac(key []byte) string {
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "megatron-ops audit head|%d|%s", l.ID, l.Digest)
	return hex.EncodeToString(m.Sum(nil))
}

func (h *head) write(e Entry) error {
	if h.dir == "" {
		return nil
	}
	// Another process may have written a later one since.
	if now, err := h.read(); err == nil && now.ID >= e.ID {
		return nil
	}
	key, err := h.key()
	if err != nil {
		return err
	}
	l := headLine{ID: e.ID, Digest: e.Digest}
	l.MAC = l.mac(key)
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return replaceFile(h.file(), append(raw, '\n'))
}

// read returns the recorded head, or a zero line if none was recorded.
func (h *head) read() (l headLine, err error) {
	if h.dir == "" {
		return l, nil
	}
	raw, err := os.ReadFile(h.file())
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	key, err := h.key()
	if err != nil {
		return l, err
	}
	if json.Unmarshal(raw, &l) != nil || !hmac.Equal([]byte(l.MAC), []byte(l.mac(key))) {
		return l, lang.Text{EN: "%s: %s", ZH: "%s：%s"}.Err(h.file(), errHead)
	}
	return l, nil
}

// replaceFile writes a file of mode 0600 atomically.
func replaceFile(file string, body []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(body)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
