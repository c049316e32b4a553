package mcp

import (
	"reflect"
	"strings"
	"sync"
)

// Each operation's input is a struct of its own. These functions access, by JSON name,
// the few fields that mean the same in all of them.

func fieldOf(in any, name string) (reflect.Value, bool) {
	v := reflect.ValueOf(in).Elem()
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	index, ok := indexesOf(v.Type())[name]
	if !ok {
		return reflect.Value{}, false
	}
	return v.FieldByIndex(index), true
}

var indexes sync.Map // reflect.Type → map[string][]int

func indexesOf(t reflect.Type) map[string][]int {
	if known, ok := indexes.Load(t); ok {
		return known.(map[string][]int)
	}
	byName := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if n, _, _ := strings.Cut(f.Tag.Get("json"), ","); n != "" && f.IsExported() {
			byName[n] = f.Index
		}
	}
	indexes.Store(t, byName)
	return byName
}

// An argument is one top-level field of an input struct.
type argument struct {
	index int
	name  string
}

var arguments sync.Map // reflect.Type → []argument

// argumentsOf returns the fields that decide what a call does: all except the
// idempotency key.
func argumentsOf(t reflect.Type) []argument {
	if known, ok := arguments.Load(t); ok {
		return known.([]argument)
	}
	var all []argument
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "idempotency_key" {
			all = append(all, argument{i, name})
		}
	}
	arguments.Store(t, all)
	return all
}

// isSet reports whether in has a boolean field of that name which is true.
func isSet(in any, name string) bool {
	f, ok := fieldOf(in, name)
	return ok && f.Kind() == reflect.Bool && f.Bool()
}

// copyField copies the field of that name from from into to, and reports whether both
// have it with the same type.
func copyField(to, from any, name string) bool {
	t, ok := fieldOf(to, name)
	if !ok {
		return false
	}
	f, ok := fieldOf(from, name)
	if !ok || f.Type() != t.Type() {
		return false
	}
	t.Set(f)
	return true
}
