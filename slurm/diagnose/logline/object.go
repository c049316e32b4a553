package logline

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Object parses a line that is one JSON object, as structured loggers and containers' log drivers write. The line may
// be cut off within its last string.
func Object(line string) (entry map[string]any, ok bool) {
	if !strings.HasPrefix(line, `{"`) {
		return nil, false
	}
	ok = json.Unmarshal([]byte(line), &entry) == nil || json.Unmarshal([]byte(strings.TrimRight(line, `\`)+`"}`), &entry) == nil
	return entry, ok
}

// levelNames are the names of structured loggers' field for a record's level.
var levelNames = []string{"level", "levelname", "lvl", "severity", "sev", "loglevel", "log_level"}

// Level returns the level in a structured logger's record, or the empty string: a collector adds none to what a program says.
func Level(entry map[string]any) string {
	for _, n := range levelNames {
		switch v := entry[n].(type) {
		case string:
			return v
		case float64:
			return fmt.Sprint(v)
		}
	}
	return ""
}

// wrapperFields are the fields in which collectors put a program's line and its time.
var wrapperFields = struct{ text, time []string }{
	text: []string{"log", "message", "msg", "text"},
	time: []string{"time", "timestamp", "ts", "@timestamp", "date"},
}

// cutObject takes a program's line out of the object in which a collector wrote it, and the time. An object with a level is a
// structured logger's own record.
func cutObject(line string) (rest, said string, ok bool) {
	entry, _ := Object(line)
	if Level(entry) != "" {
		return line, "", false
	}
	first := func(names []string) (text string, has bool) {
		for _, n := range names {
			if text, has = entry[n].(string); has {
				break
			}
		}
		return text, has
	}
	if rest, ok = first(wrapperFields.text); !ok {
		return line, "", false
	}
	said, _ = first(wrapperFields.time)
	return strings.TrimSuffix(rest, "\n"), said, true
}
