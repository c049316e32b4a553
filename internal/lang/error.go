package lang

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
)

// An Error is an error with a text in both languages. It wraps the errors among its
// values.
type Error struct {
	said  Text
	wraps []error
}

// Err returns t as an error, with values inserted as With does.
func (t Text) Err(values ...any) *Error {
	e := &Error{said: t}
	if len(values) > 0 {
		e.said = t.With(values...)
	}
	for _, v := range values {
		if err, ok := v.(error); ok {
			e.wraps = append(e.wraps, err)
		}
	}
	return e
}

// Error returns the English text, for logs.
func (e *Error) Error() string { return e.said.EN }

// Said returns the text in both languages.
func (e *Error) Said() Text { return e.said }

// Unwrap returns the wrapped errors.
func (e *Error) Unwrap() []error { return e.wraps }

// Said returns err's text in both languages. Text that only the system or another
// program provides is the same in both.
func Said(err error) Text {
	en := err.Error()
	if e, ok := err.(interface{ Said() Text }); ok {
		return e.Said()
	}
	for _, s := range systemErrors {
		if s.err == err { //nolint:errorlint // each wrapper is examined by itself
			return Text{EN: en, ZH: s.zh}
		}
	}
	switch e := err.(type) { //nolint:errorlint // each wrapper is examined by itself
	case *fs.PathError:
		return Text{EN: "%s: %s", ZH: "%s：%s"}.With(e.Path, e.Err)
	case *exec.Error:
		return Text{EN: "%s: %s", ZH: "%s：%s"}.With(e.Name, e.Err)
	case interface{ Unwrap() []error }:
		t := Text{EN: en}
		var zh []string
		for _, one := range e.Unwrap() {
			zh = append(zh, Said(one).ZH)
		}
		t.ZH = strings.Join(zh, "\n")
		return t
	}
	if inner := errors.Unwrap(err); inner != nil {
		if before, ok := strings.CutSuffix(en, inner.Error()); ok {
			return Text{EN: en, ZH: before + Said(inner).ZH}
		}
	}
	return Same(en)
}

// systemErrors are the system's most frequent errors in Chinese.
var systemErrors = []struct {
	err error
	zh  string
}{
	{syscall.ENOENT, "没有这个文件或目录"},
	{syscall.EACCES, "权限不足"},
	{syscall.EPERM, "不允许该操作"},
	{syscall.EISDIR, "是目录"},
	{syscall.ENOTDIR, "不是目录"},
	{syscall.EEXIST, "文件已存在"},
	{syscall.ENOTEMPTY, "目录非空"},
	{syscall.ENOSPC, "磁盘空间不足"},
	{syscall.EDQUOT, "超出磁盘配额"},
	{syscall.EROFS, "只读文件系统"},
	{syscall.ENAMETOOLONG, "名称过长"},
	{syscall.ELOOP, "符号链接层数过多"},
	{syscall.ESTALE, "文件句柄已失效"},
	{syscall.EIO, "输入/输出错误"},
	{syscall.EADDRINUSE, "地址已被占用"},
	{syscall.EADDRNOTAVAIL, "本机没有该地址"},
	{syscall.ECONNREFUSED, "连接被拒绝"},
	{syscall.ECONNRESET, "连接被重置"},
	{syscall.EHOSTUNREACH, "无法到达主机"},
	{syscall.ETIMEDOUT, "连接超时"},
	{fs.ErrNotExist, "文件不存在"},
	{fs.ErrExist, "文件已存在"},
	{fs.ErrPermission, "权限不足"},
	{fs.ErrInvalid, "参数无效"},
	{exec.ErrNotFound, "在 PATH 中找不到该程序"},
	{context.DeadlineExceeded, "超过时限"},
	{context.Canceled, "已被取消"},
	{io.ErrUnexpectedEOF, "内容不完整"},
}
