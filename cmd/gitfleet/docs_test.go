package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/test/golden"
)

// documents are the pages whose examples are tested: a block of "console" must be the output of
// the commands in it, and a block of "yaml" that begins with the name of a file must be a part
// of that file.
var documents = []string{"placing-workloads.md", "plan-json.md", "repository.md", "rolling-out.md", "taking-over.md"}

func TestTheDocumentationTellsTheTruth(t *testing.T) {
	dir, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	checkout(t)
	for _, name := range documents {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.File(t, file, retold(t, string(text)))
		})
	}
}

// retold returns the document with the present output.
func retold(t *testing.T, text string) string {
	t.Helper()
	var out, block strings.Builder
	kind := ""
	for line := range strings.Lines(text) {
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence && kind == "":
			kind = strings.TrimSpace(strings.TrimPrefix(line, "```")) + " "
			out.WriteString(line)
		case fence:
			out.WriteString(answered(t, strings.TrimSpace(kind), block.String()))
			out.WriteString(line)
			kind = ""
			block.Reset()
		case kind != "":
			block.WriteString(line)
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

func answered(t *testing.T, kind, block string) string {
	t.Helper()
	switch kind {
	case "console":
		return console(block)
	case "yaml":
		isPart(t, block)
	}
	return block
}

// console runs the commands of a block. A command that ends in "> FILE" writes to that file.
func console(block string) string {
	var out bytes.Buffer
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(line, "$ gitfleet ")
		if !ok {
			continue
		}
		out.WriteString(line)
		command, file, _ := strings.Cut(command, ">")
		var answer bytes.Buffer
		transcribe(&answer, strings.Fields(command)...)
		if file != "" {
			os.WriteFile(strings.TrimSpace(file), answer.Bytes(), 0o644)
		} else {
			out.Write(answer.Bytes())
		}
	}
	return out.String()
}

func isPart(t *testing.T, block string) {
	t.Helper()
	first, rest, _ := strings.Cut(block, "\n")
	name, ok := strings.CutPrefix(first, "# examples/")
	if !ok {
		return
	}
	data, err := os.ReadFile("examples/" + name)
	if err != nil {
		t.Error(err)
	} else if !strings.Contains("\n"+string(data), "\n"+rest) {
		t.Errorf("this is no part of examples/%s:\n%s", name, rest)
	}
}

func TestEveryExampleOfPlacingIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/placing-workloads.md")
	if err != nil {
		t.Fatal(err)
	}
	checkout(t)
	for _, example := range examples(t) {
		if strings.HasPrefix(example, "examples/placing-") && !strings.Contains(string(text), "gitfleet plan "+example) {
			t.Errorf("docs/placing-workloads.md does not show %s", example)
		}
	}
}

// Every field of the schema is documented, so that changes are noticed.
func TestEveryFieldOfAPlanIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/plan-json.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range jsonFields(reflect.TypeFor[forecast.Document](), "") {
		if !strings.Contains(string(text), "`"+field+"`") {
			t.Errorf("docs/plan-json.md does not describe %s", field)
		}
	}
}

// jsonFields lists the fields of gitfleet's own types, as placements[].name. Problems have the
// same fields everywhere.
func jsonFields(typ reflect.Type, prefix string) []string {
	var all []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous {
			all = append(all, jsonFields(f.Type, prefix)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, prefix+name)
		if f.Type.Kind() != reflect.Slice || f.Type.Elem().PkgPath() != typ.PkgPath() {
			continue
		}
		below := prefix + name + "[]."
		if f.Type.Elem() == reflect.TypeFor[forecast.Problem]() {
			below = name + "[]."
		}
		all = append(all, jsonFields(f.Type.Elem(), below)...)
	}
	return all
}
