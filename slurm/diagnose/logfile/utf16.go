package logfile

import (
	"bufio"
	"bytes"
	"io"
	"os"

	"golang.org/x/text/encoding/unicode"
)

// utf16Marks begin a text in UTF-16, as PowerShell writes what is redirected to a
// file.
var utf16Marks = [][]byte{{0xff, 0xfe}, {0xfe, 0xff}}

func isUTF16(head []byte) bool {
	return bytes.HasPrefix(head, utf16Marks[0]) || bytes.HasPrefix(head, utf16Marks[1])
}

// inUTF8 gives a text in UTF-16 as UTF-8, and any other as it is.
func inUTF8(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	if head, _ := b.Peek(2); isUTF16(head) {
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Reader(b)
	}
	return b
}

// keptAsUTF8 keeps the ends of a file in UTF-16, whose places are then those of
// its text; nil of any other.
func keptAsUTF8(file *os.File) (*kept, error) {
	head := make([]byte, 2)
	if n, _ := file.ReadAt(head, 0); !isUTF16(head[:n]) {
		return nil, nil
	}
	return keep(file, keepTail)
}
