package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// maxStack is how many frames of a stack are compared and shown.
const maxStack = 8

var (
	spyThread = lazy.New(`^Thread (?:0x)?[0-9A-Fa-f]+ \([^)]*\): "MainThread"|^Thread (?:0x)?[0-9A-Fa-f]+ \([^)]*\)$`)
	spyFrame  = lazy.New(`^ {4}(\S.*) \((.+):\d+\)$`)
)

// A spied is a main thread's stack as py-spy printed it.
type spied struct {
	Tag    logline.Tag
	Frames []string
}

// spy collects the frames of main threads. It reports whether the line is part of a stack.
func (s *scanner) spy(st *stream, t logline.Tag, text string) bool {
	if strings.HasPrefix(text, "Thread ") && spyThread.MatchString(text) && len(s.Spied) < 1<<14 {
		s.Spied = append(s.Spied, spied{Tag: t})
		st.spying = len(s.Spied)
		return true
	}
	if st.spying == 0 {
		return false
	}
	m := spyFrame.FindStringSubmatch(text)
	if m == nil {
		st.spying = 0
		return false
	}
	if one := &s.Spied[st.spying-1]; len(one.Frames) < maxStack {
		one.Frames = append(one.Frames, m[1]+" ("+m[2]+")")
	}
	return true
}

// nativeStack reports whether a line belongs to the C++ stack that PyTorch prints below an error or
// warning, whose message says more. Paddle prints one above its
// message about a signal.
func nativeStack(text string) bool {
	return strings.HasPrefix(text, "frame #") || strings.HasPrefix(text, "Exception raised from ") && strings.HasSuffix(text, "(most recent call first):") ||
		paddleStack.MatchString(text)
}

// paddleStack is a head or a frame of Paddle's (paddle/phi/core/enforce.h).
var paddleStack = lazy.New(`^(?:C\+\+ Traceback \(most recent call last\):|No stack trace in paddle\b.*|Error Message Summary:|\d+ {3}[\w<>~]+(?:::|\().*)$`)
