/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package plaintext makes text that others wrote safe to print on a terminal.
//
// Messages of interceptors, reasons of maintenances and names in statuses are written by
// users with few rights and read by administrators with many. Control characters in them
// could move the cursor, change colors or the title, or forge lines; format characters
// could reorder or hide what is printed. Both are printed as visible escapes.
package plaintext

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// zeroWidthNonJoiner and zeroWidthJoiner are format characters that some scripts, and
	// emoji, cannot do without. They neither reorder nor hide their neighbours.
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// Escape replaces what a terminal would not print as a character by an escape, such as
// \u009b for U+009B, and bytes that are not UTF-8 by escapes such as \x9b. Line ends and
// tabs are kept: text whose lines must not pass for others goes through Line first.
//
// In a JSON document, the escapes stand for the very characters that they replace.
// Escape does not change what it has escaped.
func Escape(text string) string {
	return escape(text, func(r rune) bool { return r == '\n' || r == '\t' || isHarmless(r) })
}

// Line is Escape for text that has to fit into a line: blanks of any kind, such as line
// ends, become single spaces.
func Line(text string) string {
	return strings.Join(strings.Fields(escape(text, func(r rune) bool { return unicode.IsSpace(r) || isHarmless(r) })), " ")
}

// Lines returns the lines of each text, in a slice of the same length.
func Lines(texts []string) []string {
	lines := make([]string, len(texts))
	for i, text := range texts {
		lines[i] = Line(text)
	}
	return lines
}

// NewWriter returns a writer that escapes what is written to it, as Escape does. Each
// write is taken by itself: a character that is split between two is escaped.
func NewWriter(out io.Writer) io.Writer { return &writer{out} }

type writer struct {
	out io.Writer
}

// Write returns the length of what it was given, not of what that became.
func (w *writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.out, Escape(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// isHarmless reports whether a terminal prints the character, and nothing else happens.
func isHarmless(r rune) bool {
	return unicode.IsGraphic(r) || r == zeroWidthNonJoiner || r == zeroWidthJoiner
}

func escape(text string, keep func(rune) bool) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case keep(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// ellipsis marks a text that was truncated.
const ellipsis = "..."

// Truncate returns the text in at most limit bytes. A longer text ends in "...". No part of a
// character stays: it would be encoded as a longer replacement character and exceed the limit
// again.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
