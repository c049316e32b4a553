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

// maxLine bounds one line of a batch; a longer one is answered with an error.
const maxLine = 4 << 20

// ByLine is a batch form that answers lines on all cores.
func ByLine(answer func([]byte) []byte) func(io.Reader, io.Writer) error {
	return func(in io.Reader, out io.Writer) error { return eachLine(in, out, runtime.GOMAXPROCS(0), answer) }
}

// OneByOne is a batch form that answers a line when the one before is answered, for
// whatever takes all cores by itself or asks a service.
func OneByOne(answer func([]byte) []byte) func(io.Reader, io.Writer) error {
	return func(in io.Reader, out io.Writer) error { return eachLine(in, out, 1, answer) }
}

// eachLine answers lines by so many workers and keeps their order: a slot travels to
// the writer in the order of reading and is filled by whichever worker is free. It
// holds a bounded number of lines, and returns an error only where r or w fails.
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
			if failed == nil && len(order) == 0 { // a reader at the other end of a pipe may wait for it
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

// ReadLine reads one line with its end; of a line that is longer than limit it keeps
// nothing and says so.
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
