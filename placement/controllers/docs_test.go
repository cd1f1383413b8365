package controllers

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/drift.md")

// The tables in docs/drift.md are those of this package.
func TestDocumentation(t *testing.T) {
	const file = "../../docs/drift.md"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for name, table := range map[string]string{"fields": fieldTable(), "autoscalers": autoscalerTable(), "runs": runTable(), "keeps": keepTable(), "adders": adderTable()} {
		begin := "<!-- " + name + " -->\n"
		before, rest, found := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, "<!-- end -->")
		if !found || !closed {
			t.Fatalf("no place for the table %s", name)
		}
		text = before + begin + table + "<!-- end -->" + after
	}
	switch {
	case text == string(raw):
	case *update:
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/drift.md has other tables: go test ./placement/controllers -update")
	}
}

func fieldTable() string {
	var b strings.Builder
	b.WriteString("| kind | field | belongs to | sign |\n|---|---|---|---|\n")
	for _, f := range Fields {
		var kinds []string
		for _, k := range f.Kinds {
			kinds = append(kinds, k.Kind)
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", strings.Join(kinds, ", "), Pointer(f.Path), f.Owner, f.Sign)
	}
	return b.String()
}

func autoscalerTable() string {
	var b strings.Builder
	b.WriteString("| kind | field with the object |\n|---|---|\n")
	for _, a := range Autoscalers {
		fmt.Fprintf(&b, "| %s | `%s` |\n", a.GroupKind, Pointer(a.Target))
	}
	return b.String()
}

func keepTable() string {
	var b strings.Builder
	b.WriteString("| kind | field | what stays | belongs to |\n|---|---|---|---|\n")
	for _, k := range Keeps {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", k.Kind, Pointer(k.Path), k.Sign, k.Owner)
	}
	return b.String()
}

func adderTable() string {
	var b strings.Builder
	b.WriteString("| program | field managers | items and keys |\n|---|---|---|\n")
	quoted := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	for _, a := range Adders {
		managers := ""
		if len(a.Managers) > 0 {
			managers = quoted(a.Managers)
		}
		var items []string
		for _, i := range a.Items {
			items = append(items, strings.Join(i.Fields, ", ")+": "+quoted(i.Names))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a.Owner, managers, strings.Join(items, "; "))
	}
	return b.String()
}

func runTable() string {
	var b strings.Builder
	b.WriteString("| kind | sign | deleted by |\n|---|---|---|\n")
	for _, r := range Runs {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.GroupKind, r.Sign, r.Owner)
	}
	return b.String()
}
