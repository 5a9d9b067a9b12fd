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
	"slices"
	"strings"
)

// shellWord is a word of a shell command.
type shellWord struct {
	text string
	// expanded is set if the shell replaces a part of the word when the command runs: a variable, a
	// substitution, or a pattern of file names.
	expanded bool
}

// shellCommand is a simple command of a script: the words between two separators.
type shellCommand struct {
	line  int
	words []shellWord
	// conditional is set within a loop, a condition, or beside && and ||.
	conditional bool
	// text is a line of a here-document, of one that has no words: what reads it may run it.
	text string
}

// maxShellDepth limits substitutions within substitutions.
const maxShellDepth = 50

// shellKeywords may precede a command. The value is what the keyword adds to the depth of
// conditions and loops.
var shellKeywords = map[string]int{
	"if": 1, "for": 1, "while": 1, "until": 1, "case": 1, "select": 1, "fi": -1, "done": -1, "esac": -1,
	"then": 0, "else": 0, "elif": 0, "do": 0, "!": 0, "{": 0, "}": 0, "time": 0,
}

// shellReader reads the simple commands of a script. It reads only as much of the language as is
// needed to find commands of literal words, and marks what it cannot know before the script runs. It
// never runs anything.
type shellReader struct {
	text  string
	at    int
	line  int
	depth int

	word     strings.Builder
	inWord   bool
	expanded bool
	command  shellCommand
	commands []shellCommand
	// skipWord is set after a redirection: the next word is a file.
	skipWord bool
	// heredocs are the ends of the here-documents that begin after the current line.
	heredocs []heredoc
	// nested is how many conditions and loops are open.
	nested int
}

type heredoc struct {
	end string
	// tabs is set for <<-, which allows tabs before the end.
	tabs bool
}

// readShell returns the simple commands of a script, also those in substitutions.
func readShell(text string) ([]shellCommand, error) {
	return readShellAt(text, 1, 0)
}

func readShellAt(text string, line, depth int) ([]shellCommand, error) {
	if depth > maxShellDepth {
		return nil, fmt.Errorf("line %d: has more than %d substitutions within each other", line, maxShellDepth)
	}
	r := &shellReader{text: text, line: line, depth: depth}
	for r.at < len(r.text) {
		if err := r.step(); err != nil {
			return nil, err
		}
	}
	r.endCommand(false)
	return r.commands, nil
}

// step reads the next character, or a whole quote, substitution or operator.
func (r *shellReader) step() error {
	c := r.text[r.at]
	switch c {
	case ' ', '\t', '\r':
		r.endWord()
	case '\n':
		r.endCommand(false)
		r.at++
		r.line++
		r.skipHeredocs()
		return nil
	case '#':
		if !r.inWord {
			r.skipTo('\n')
			return nil
		}
		r.add(c)
	case '\\':
		return r.readEscape()
	case '\'':
		return r.readSingleQuotes()
	case '"':
		return r.readDoubleQuotes()
	case '$', '`':
		return r.readExpansion()
	case ';', '&', '|', '(', ')':
		return r.readSeparator()
	case '<', '>':
		return r.readRedirection()
	case '*', '?', '[':
		r.expanded = true
		r.add(c)
	case '{', '~':
		// ~ and {a,b} are replaced; { alone begins a group, and {} is literal.
		r.expanded = r.expanded || c == '~' && !r.inWord || c == '{' && strings.IndexByte(" \t\n}", r.next()) < 0
		r.add(c)
	default:
		r.add(c)
	}
	r.at++
	return nil
}

// next returns the character after the current one, or a line end.
func (r *shellReader) next() byte {
	if r.at+1 < len(r.text) {
		return r.text[r.at+1]
	}
	return '\n'
}

func (r *shellReader) add(c byte) {
	r.inWord = true
	r.word.WriteByte(c)
}

func (r *shellReader) skipTo(c byte) {
	for r.at < len(r.text) && r.text[r.at] != c {
		r.at++
	}
}

func (r *shellReader) endWord() {
	if !r.inWord {
		return
	}
	if r.skipWord {
		r.skipWord = false
	} else {
		if len(r.command.words) == 0 {
			r.command.line = r.line
		}
		r.command.words = append(r.command.words, shellWord{text: r.word.String(), expanded: r.expanded})
	}
	r.word.Reset()
	r.inWord, r.expanded = false, false
}

// endCommand ends a command. conditional is set before && and ||.
func (r *shellReader) endCommand(conditional bool) {
	r.endWord()
	r.skipWord = false
	words := r.command.words
	for len(words) > 0 && !words[0].expanded {
		change, isKeyword := shellKeywords[words[0].text]
		if !isKeyword {
			break
		}
		r.nested = max(0, r.nested+change)
		if slices.Contains([]string{"for", "case", "select"}, words[0].text) {
			words = nil // What follows on the line are the words of the loop, not a command.
			break
		}
		words = words[1:]
	}
	if len(words) > 0 {
		r.command.words = words
		r.command.conditional = r.command.conditional || conditional || r.nested > 0
		r.commands = append(r.commands, r.command)
	}
	r.command = shellCommand{conditional: conditional}
}

func (r *shellReader) readEscape() error {
	r.at++
	if r.at == len(r.text) {
		return nil
	}
	c := r.text[r.at]
	r.at++
	if c == '\n' {
		r.line++
		return nil
	}
	r.add(c)
	return nil
}

func (r *shellReader) readSingleQuotes() error {
	start := r.at + 1
	length := strings.IndexByte(r.text[start:], '\'')
	if length < 0 {
		return r.notClosed("'")
	}
	r.inWord = true
	r.addText(r.text[start : start+length])
	r.at = start + length + 1
	return nil
}

// addText adds literal text, which may have several lines.
func (r *shellReader) addText(text string) {
	r.inWord = true
	r.word.WriteString(text)
	r.line += strings.Count(text, "\n")
}

func (r *shellReader) readDoubleQuotes() error {
	r.inWord = true
	r.at++
	for r.at < len(r.text) {
		switch c := r.text[r.at]; c {
		case '"':
			r.at++
			return nil
		case '$', '`':
			if err := r.readExpansion(); err != nil {
				return err
			}
			continue
		case '\\':
			if r.at+1 < len(r.text) && !strings.ContainsRune("$`\"\\\n", rune(r.text[r.at+1])) {
				r.add(c) // Before other characters, the backslash is literal.
			}
			if err := r.readEscape(); err != nil {
				return err
			}
			continue
		default:
			r.addText(string([]byte{c}))
		}
		r.at++
	}
	return r.notClosed(`"`)
}

func (r *shellReader) notClosed(quote string) error {
	return fmt.Errorf("line %d: %s is not closed", r.line, quote)
}

// readExpansion reads a variable or a substitution. The commands of a substitution are read, too.
func (r *shellReader) readExpansion() error {
	start := r.at
	switch {
	case r.text[r.at] == '`':
		return r.readBackquotes()
	case strings.HasPrefix(r.text[r.at:], "$("):
		return r.readSubstitution()
	case strings.HasPrefix(r.text[r.at:], "${"):
		length := strings.IndexByte(r.text[r.at:], '}')
		if length < 0 {
			return r.notClosed("${")
		}
		r.at += length + 1
	default:
		r.at++
		for r.at < len(r.text) && isNameByte(r.text[r.at]) {
			r.at++
		}
	}
	// A dollar sign alone is literal; to take it for a variable is on the safe side.
	r.addText(r.text[start:r.at])
	r.expanded = true
	return nil
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (r *shellReader) readBackquotes() error {
	for end := r.at + 1; end < len(r.text); end++ {
		switch r.text[end] {
		case '\\':
			end++
		case '`':
			return r.readInner(r.at+1, end)
		}
	}
	return r.notClosed("`")
}

// readSubstitution finds the parenthesis that closes the substitution.
func (r *shellReader) readSubstitution() error {
	open := 0
	quote := byte(0)
	for end := r.at + 1; end < len(r.text); end++ {
		switch c := r.text[end]; {
		case c == '\\' && quote != '\'':
			end++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(':
			open++
		case c == ')':
			if open--; open == 0 {
				return r.readInner(r.at+2, end)
			}
		}
	}
	return r.notClosed("$(")
}

// readInner reads the commands of a substitution.
func (r *shellReader) readInner(start, end int) error {
	commands, err := readShellAt(r.text[start:end], r.line, r.depth+1)
	if err != nil {
		return err
	}
	r.commands = append(r.commands, commands...)
	r.addText(r.text[r.at : end+1])
	r.expanded = true
	r.at = end + 1
	return nil
}

func (r *shellReader) readSeparator() error {
	operator := r.text[r.at : r.at+1]
	if double := r.text[r.at:min(r.at+2, len(r.text))]; double == "&&" || double == "||" || double == "|&" || double == ";;" || double == "&>" {
		operator = double
	}
	if operator == "&>" {
		r.endWord()
		r.at++
		return r.readRedirection()
	}
	r.endCommand(operator == "&&" || operator == "||")
	r.at += len(operator)
	return nil
}

// readRedirection reads an operator such as > or 2>&1, whose file is no word of the command.
func (r *shellReader) readRedirection() error {
	if r.inWord && strings.Trim(r.word.String(), "0123456789") == "" {
		r.word.Reset()
		r.inWord = false
	}
	r.endWord()
	rest := r.text[r.at:]
	switch {
	case strings.HasPrefix(rest, "<<<"):
		r.at += 3
		r.skipWord = true
	case strings.HasPrefix(rest, "<<"):
		r.at += 2
		r.readHeredoc()
	case strings.HasPrefix(rest, "<("), strings.HasPrefix(rest, ">("):
		r.at++ // The parenthesis separates the commands of the substitution from this one.
		r.expanded, r.inWord = true, true
	default:
		r.at++
		for r.at < len(r.text) && strings.IndexByte(">&|", r.text[r.at]) >= 0 {
			r.at++
		}
		r.skipWord = true
	}
	return nil
}

func (r *shellReader) readHeredoc() {
	tabs := strings.HasPrefix(r.text[r.at:], "-")
	if tabs {
		r.at++
	}
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\t') {
		r.at++
	}
	start := r.at
	for r.at < len(r.text) && strings.IndexByte(" \t\n;&|<>()", r.text[r.at]) < 0 {
		r.at++
	}
	end := strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(r.text[start:r.at])
	r.heredocs = append(r.heredocs, heredoc{end: end, tabs: tabs})
}

// mentionsDrain reports whether a text may have a drain command.
func mentionsDrain(text string) bool {
	return strings.Contains(text, "kubectl") && strings.Contains(text, "drain")
}

// skipHeredocs skips the lines of here-documents: they are text for the command before them.
func (r *shellReader) skipHeredocs() {
	for _, doc := range r.heredocs {
		for r.at < len(r.text) {
			start, at := r.at, r.line
			r.skipTo('\n')
			line := strings.TrimSuffix(r.text[start:r.at], "\r")
			if r.at < len(r.text) {
				r.at++
				r.line++
			}
			if doc.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if line == doc.end {
				break
			}
			if mentionsDrain(line) {
				r.commands = append(r.commands, shellCommand{line: at, text: strings.TrimSpace(line)})
			}
		}
	}
	r.heredocs = nil
}
