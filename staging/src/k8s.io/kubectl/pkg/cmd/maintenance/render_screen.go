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

package maintenance

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/kubectl/pkg/util/term"
)

// Control sequences of ECMA-48, and the usual ones for the cursor.
const (
	hideCursor    = "\x1b[?25l"
	showCursor    = "\x1b[?25h"
	clearLineEnd  = "\x1b[K"
	clearBelow    = "\x1b[J"
	cursorUpLines = "\x1b[%dA"
)

// screen draws each text over the previous one. A frame is one write that overwrites lines instead
// of clearing them first, so that nothing flickers.
type screen struct {
	out io.Writer
	// size returns the columns and rows to draw on.
	size func() (width, height int)
	// drawn is how many lines the last frame has.
	drawn int
}

// newScreen returns nil if out is not a terminal.
func newScreen(out io.Writer) *screen {
	tty := term.TTY{Out: out}
	if !tty.IsTerminalOut() {
		return nil
	}
	return &screen{out: out, size: func() (int, int) {
		size := tty.GetSize()
		if size == nil || size.Width == 0 || size.Height == 0 {
			return defaultWidth - 1, 24
		}
		// Clearing the rest of a line that fills all columns would erase its last column.
		return int(size.Width) - 1, int(size.Height)
	}}
}

// draw shows a text. It truncates what does not fit: a frame that scrolls could not be overwritten.
func (s *screen) draw(text string) error {
	width, height := s.size()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if limit := max(1, height-1); len(lines) > limit {
		hidden := len(lines) - limit + 1
		lines = append(lines[:limit-1], fmt.Sprintf("... %s more, enlarge the terminal", counted(hidden, "line", "lines")))
	}
	var frame strings.Builder
	frame.WriteString(hideCursor)
	// The terminal may have become lower than the last frame.
	if up := min(s.drawn, max(0, height-1)); up > 0 {
		fmt.Fprintf(&frame, cursorUpLines, up)
	}
	for _, line := range lines {
		frame.WriteString("\r" + truncated(line, width) + clearLineEnd + "\n")
	}
	frame.WriteString(clearBelow)
	s.drawn = len(lines)
	_, err := io.WriteString(s.out, frame.String())
	return err
}

// close shows the cursor again. It is below the last frame, which stays.
func (s *screen) close() {
	// The command ends, and cannot handle an error.
	_, _ = io.WriteString(s.out, showCursor)
}
