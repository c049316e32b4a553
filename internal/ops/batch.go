package ops

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ByLine is a batch form whose answers depend on nothing but their line.
func ByLine(answer func([]byte) []byte) func(io.Reader, io.Writer) error {
	return func(in io.Reader, out io.Writer) error {
		return eachLine(in, out, answer)
	}
}

// eachLine answers the lines of in one by one with answer.
func eachLine(in io.Reader, out io.Writer, answer func([]byte) []byte) error {
	r, w := bufio.NewReaderSize(in, 1<<16), bufio.NewWriter(out)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if _, werr := w.Write(append(answer(line), '\n')); werr != nil {
				return werr
			}
			// Whoever feeds lines one at a time gets each answer at once.
			if r.Buffered() == 0 {
				if werr := w.Flush(); werr != nil {
					return werr
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return w.Flush()
		}
		if err != nil {
			return err
		}
	}
}
