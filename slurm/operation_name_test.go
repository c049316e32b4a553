package slurm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

func TestWhatWasTriedIsSaidInBothLanguages(t *testing.T) {
	busy := lang.Text{EN: "busy", ZH: "繁忙"}
	for _, tt := range []struct {
		err    *Error
		en, zh string
	}{
		{&Error{Op: "cancel 4711", Msg: lang.Same("Access denied")}, "cancel 4711: Access denied", "取消 4711 失败，原文：“Access denied”"},
		{&Error{Op: "submit", Msg: lang.Same("Access denied")}, "submit: Access denied", "提交失败，原文：“Access denied”"},
		{&Error{Op: "squeue", Msg: lang.Same("Access denied")}, "squeue: Access denied", "squeue 失败，原文：“Access denied”"},
		{&Error{Msg: lang.Same("Access denied")}, "Access denied", "操作失败，原文：“Access denied”"},
		{&Error{Op: "cancel 4711", Msg: busy}, "cancel 4711: busy", "取消 4711：繁忙"},
		{&Error{Msg: busy}, "busy", "繁忙"},
		{&Error{Op: "visit gpu[01-04]", Msg: busy}, "visit gpu[01-04]: busy", "在 gpu[01-04] 上执行：繁忙"},
	} {
		require.Equal(t, tt.en, tt.err.Error())
		require.Equal(t, lang.Text{EN: tt.en, ZH: tt.zh}, lang.Said(tt.err))
	}
}

func TestWordsOfOursAreNotQuotedAsSlurms(t *testing.T) {
	ours := Refused("submit", lang.Text{EN: "invalid partition of ours", ZH: "我们的分区无效"}.Err())
	require.Equal(t, "提交：我们的分区无效", ours.Said().ZH)
	theirs := Refused("submit", Sayf("Invalid partition name specified"))
	require.Equal(t, "提交失败，原文：“Invalid partition name specified”", theirs.Said().ZH)
	require.Equal(t, FromStderr("submit", "Invalid partition name specified"), theirs)
}
