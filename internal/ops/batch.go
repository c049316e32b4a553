package ops

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// maxLine is the longest line of a batch, in bytes. A longer line gets an error as its
// answer.
const maxLine = 4 << 20

// ByLine returns a batch form that answers lines in parallel on all cores.
func ByLine(answer func([]byte) []byte) func(io.Reader, io.Writer) error {
	return func(in io.Reader, out io.Writer) error { return eachLine(in, out, runtime.GOMAXPROCS(0), answer) }
}

// OneByOne returns a batch form that answers one line after the other. It suits an
// operation that uses all cores by itself or asks a service.
func OneByOne(answer func([]byte) []byte) func(io.Reader, io.Writer) error {
	return func(in io.Reader, out io.Writer) error { return eachLine(in, out, 1, answer) }
}

// eachLine answers the lines of r with the given number of workers and keeps their
// order: each line travels to the writer in a slot, in reading order, and whichever
// worker is free fills the slot. A bounded number of lines is in memory at a time.
// eachLine returns an error only where reading r or writing w fails.
func eachLine(r io.Reader, w io.Writer, workers int, answer func([]byte) []byte) error {
	type slot struct {
		line    []byte
		tooLong bool
		done    chan []byte
	}
	todo := make(chan *slot, 4*workers)
	order := make(chan *slot, 4*workers)

	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for s := range todo {
				if s.tooLong {
					s.done <- fmt.Appendf(nil, `{"id":null,"error":{"code":"bad_input","field":"","message":"the line is longer than %d bytes"}}`, maxLine)
					continue
				}
				s.done <- answer(s.line)
			}
		})
	}
	written := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		out := bufio.NewWriter(w)
		var failed error
		for s := range order {
			text := <-s.done
			if failed != nil {
				continue
			}
			_, failed = out.Write(append(text, '\n'))
			if failed == nil && len(order) == 0 { // the reader of a pipe may wait for this answer
				failed = out.Flush()
			}
			if failed != nil {
				close(stop)
			}
		}
		if failed == nil {
			failed = out.Flush()
		}
		written <- failed
	}()

	in := bufio.NewReaderSize(r, 64<<10)
	var failed error
reading:
	for {
		line, tooLong, err := ReadLine(in, maxLine)
		if line = bytes.TrimSpace(line); len(line) > 0 || tooLong {
			s := &slot{line: line, tooLong: tooLong, done: make(chan []byte, 1)}
			select {
			case todo <- s:
				order <- s
			case <-stop:
				break reading
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				failed = err
			}
			break
		}
	}
	close(todo)
	group.Wait()
	close(order)
	if err := <-written; err != nil {
		return err
	}
	return failed
}

// ReadLine reads one line, including its newline. Of a line longer than limit bytes it
// keeps nothing and returns tooLong.
func ReadLine(in *bufio.Reader, limit int) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
