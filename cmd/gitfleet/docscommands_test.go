package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// aWord matches one word of a command line; quoted text is one word.
var aWord = regexp.MustCompile(`(?:[^\s"']|"[^"]*"|'[^']*')+`)

// Every command in the documentation exists, and accepts the flags and arguments shown.
func TestCommandsOfTheDocumentationExist(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	more, err := filepath.Glob("../../examples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(append(pages, more...), "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandsOf(string(text)) {
			if err := understood(line); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(page), line, err)
			}
		}
	}
	for line, ok := range map[string]bool{
		"plan . --clusters x": true, "plan": false, "plan . --cluster x": false, "plans .": false, "get crp": true, "suspend crp/web": false,
	} {
		if err := understood(line); (err == nil) != ok {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// commandsOf returns the commands in the blocks of a page, without comments at the end of a
// line.
func commandsOf(text string) []string {
	var out []string
	inside := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
			continue
		}
		line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), " #")
		for _, end := range []string{" | ", " > ", " && "} {
			line, _, _ = strings.Cut(line, end)
		}
		if command, ok := strings.CutPrefix(line, "gitfleet "); ok && inside {
			out = append(out, strings.TrimSpace(command))
		}
	}
	return out
}

// understood parses a command and does not run it.
func understood(line string) error {
	args := aWord.FindAllString(line, -1)
	for i := range args {
		args[i] = strings.NewReplacer(`"`, "", "'", "").Replace(args[i])
	}
	root := newRoot()
	root.SetOut(io.Discard)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if err := cmd.ValidateRequiredFlags(); err != nil {
		return err
	}
	if cmd.Args == nil {
		return cobra.ArbitraryArgs(cmd, cmd.Flags().Args())
	}
	return cmd.Args(cmd, cmd.Flags().Args())
}
