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
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// runners run the command that follows them in the same shell, with the same words.
var runners = sets.New("sudo", "exec", "command", "env", "nohup", "time", "builtin")

// printing print their words and run nothing.
var printing = sets.New("echo", "printf", ":", "log", "logger")

// addScript converts the drain commands of a script.
func (c *converter) addScript(in *input) {
	where := source{file: in.name}
	if c.to != ours {
		c.fail(where, "", "cannot be converted to %s: %s", c.to, noMaintenanceIn137)
		return
	}
	commands, err := readShell(string(in.data))
	if err != nil {
		c.fail(where, "", "%v: correct the script, or write the drain command after \"--\"", err)
		return
	}
	drains, others := 0, 0
	for _, command := range commands {
		at := where
		at.line = command.line
		switch kind, words := classify(command.words); {
		case command.text != "":
			at.object = command.text
			c.add(isLost, at, "here-document", "is the input of another command: if that one runs it, write the command after \"--\"")
		case kind == drainCommand:
			drains++
			c.reportSettings(at, command.words)
			c.addDrainOf(at, words, command.conditional)
		case kind == printedDrain:
			at.object = describeWords(command.words)
			c.add(isIgnored, at, "command", "only prints a drain command: if another command runs it, write it after \"--\"")
		case kind == clusterSetting:
			at.object = describeWords(command.words)
			c.add(isLost, at, kubeconfigVariable, settingLost)
		case kind == hiddenDrain:
			drains++
			at.object = describeWords(command.words)
			c.fail(at, "", "runs \"kubectl drain\" through other words, so what it drains is known only when it runs. Write the command with the names of the nodes, or their labels, after \"--\"")
		case kind == foreignDrain:
			at.object = describeWords(command.words)
			c.add(isLost, at, "command", "is not \"kubectl drain\": if it stands for it, write the command after \"--\"")
		case kind == schedulingCommand:
			at.object = describeWords(command.words)
			c.add(isChanged, at, "command", "a maintenance cordons its nodes, and uncordons them at its end: kubectl maintenance complete NAME")
		default:
			others++
		}
	}
	if drains == 0 {
		c.fail(where, "", "has no command \"kubectl drain\"")
	}
	if others > 0 {
		c.add(isLost, where, counted(others, "other command", "other commands"), "only drain commands are converted: keep the script, and create the objects in place of these")
	}
}

// kubeconfigVariable is the variable that says which cluster kubectl talks to.
const kubeconfigVariable = "KUBECONFIG"

// settingLost is what becomes of variables.
const settingLost = "is not part of an object: set it for the command that creates the object"

// reportSettings reports the variables that are set for a drain command: they may choose the cluster.
func (c *converter) reportSettings(where source, words []shellWord) {
	where.object = "kubectl drain"
	for _, word := range words {
		switch {
		case path.Base(word.text) == "kubectl":
			return
		case isAssignment(word.text):
			c.add(isLost, where, word.text, settingLost)
		}
	}
}

// addDrainOf converts the words after "kubectl".
func (c *converter) addDrainOf(where source, words []shellWord, conditional bool) {
	where.object = "kubectl drain"
	valid := true
	for _, word := range words {
		if word.expanded {
			c.fail(where, "", "%q is replaced when the script runs, and nothing is run here: write the command with the names of the nodes, or their labels, after \"--\"", word.text)
			valid = false
		}
	}
	if valid {
		c.convertDrain(where, textsOf(words), conditional)
	}
}

func describeWords(words []shellWord) string { return strings.Join(textsOf(words), " ") }

// commandKind is what a command of a script is.
type commandKind int

const (
	otherCommand commandKind = iota
	// drainCommand is "kubectl drain".
	drainCommand
	// hiddenDrain runs "kubectl drain" by another command, such as xargs.
	hiddenDrain
	// printedDrain prints "kubectl drain", for a reader or for another command.
	printedDrain
	// clusterSetting sets KUBECONFIG for the commands that follow.
	clusterSetting
	// foreignDrain is the subcommand "drain" of another command, or a variable with a drain command.
	foreignDrain
	// schedulingCommand is "kubectl cordon" or "kubectl uncordon".
	schedulingCommand
)

// classify returns what a command is, and the words after "kubectl".
func classify(words []shellWord) (commandKind, []shellWord) {
	words = withoutAssignments(words)
	switch {
	case len(words) == 0:
		return otherCommand, nil
	case printing.Has(words[0].text) && mentionsDrain(describeWords(words)):
		return printedDrain, nil
	case printing.Has(words[0].text):
		return otherCommand, nil
	case setsKubeconfig(words):
		return clusterSetting, nil
	}
	at := slices.IndexFunc(words, func(word shellWord) bool { return !word.expanded && path.Base(word.text) == "kubectl" })
	if at < 0 {
		return classifyOther(words), nil
	}
	arguments := words[at+1:]
	subcommand := subcommandOf(arguments)
	switch {
	case subcommand == "cordon" || subcommand == "uncordon":
		return schedulingCommand, nil
	case subcommand != "drain":
		return otherCommand, nil
	}
	for _, before := range words[:at] {
		if !runners.Has(before.text) && !strings.Contains(before.text, "=") {
			return hiddenDrain, nil
		}
	}
	return drainCommand, arguments
}

// classifyOther classifies a command without the word "kubectl".
func classifyOther(words []shellWord) commandKind {
	for i, word := range words {
		switch {
		case !mentionsDrain(word.text):
		case isOnlyAssignment(words):
			return foreignDrain
		default:
			return hiddenDrain
		}
		if word.text == "drain" && i > 0 && (words[i-1].expanded || i == 1) {
			if words[i-1].expanded {
				return hiddenDrain
			}
			return foreignDrain
		}
	}
	// Flags of kubectl may come before the subcommand.
	arguments := words[1:]
	if words[0].text == "oc" {
		if at := slices.IndexFunc(arguments, func(word shellWord) bool { return word.text == "adm" }); at >= 0 {
			arguments = arguments[at+1:]
		}
	}
	if subcommandOf(arguments) == "drain" {
		return foreignDrain
	}
	return otherCommand
}

// setsKubeconfig reports whether a command sets KUBECONFIG for those that follow.
func setsKubeconfig(words []shellWord) bool {
	if words[0].text == "export" {
		words = words[1:]
	}
	return slices.ContainsFunc(words, func(word shellWord) bool { return strings.HasPrefix(word.text, kubeconfigVariable+"=") }) &&
		!slices.ContainsFunc(words, func(word shellWord) bool { return !isAssignment(word.text) })
}

// withoutAssignments removes assignments before a command.
func withoutAssignments(words []shellWord) []shellWord {
	for len(words) > 1 && isAssignment(words[0].text) {
		words = words[1:]
	}
	return words
}

func isOnlyAssignment(words []shellWord) bool { return len(words) == 1 && isAssignment(words[0].text) }

func isAssignment(text string) bool {
	name, _, found := strings.Cut(text, "=")
	return found && name != "" && strings.IndexFunc(name, func(r rune) bool { return r > 0x7f || !isNameByte(byte(r)) }) < 0
}

// nodeCommands are the subcommands of kubectl that a maintenance replaces.
var nodeCommands = sets.New("drain", "cordon", "uncordon")

// subcommandOf returns the first argument that is no flag, and no value of a flag, if it is one of
// nodeCommands.
func subcommandOf(arguments []shellWord) string {
	args := textsOf(arguments)
	if !nodeCommands.HasAny(args...) {
		return ""
	}
	if first := firstArgument(args); nodeCommands.Has(first) {
		return first
	}
	return ""
}

func textsOf(words []shellWord) []string {
	texts := make([]string, 0, len(words))
	for _, word := range words {
		texts = append(texts, word.text)
	}
	return texts
}
