package picture

import (
	"bytes"
	"encoding/json"
	"flag"
	"html"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/gitfleet/gitfleet/test/giteaserver"
)

var (
	pictures = flag.Bool("pictures", false, "write the pictures of pull requests to docs/pictures")
	browser  = flag.String("browser", "chromium", "the browser that makes them")
)

// texts has what people see of pull requests on a forge, as the end-to-end tests found it.
const texts = "../e2e/testdata/"

// pullRequests are the pictures of pull requests, with their heights.
var pullRequests = map[string]int{"drift-pull-request": 425, "plan-pull-request": 572}

// The pictures of pull requests are made of what Gitea makes of their texts.
func TestPicturesOfPullRequests(t *testing.T) {
	if !*pictures {
		t.Skip("run with -pictures; TestPicturesAreCurrent says whether that is needed")
	}
	server := giteaserver.Start(t)
	for name, height := range pullRequests {
		text, err := os.ReadFile(texts + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		title, body, _ := strings.Cut(string(text), "\n\n")
		rendered, _, err := server.Client.RenderMarkdown(gitea.MarkdownOption{Text: body, Mode: "comment", Context: "https://git.example.com/fleet/hub"})
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "plan") { // the first object that changes
			rendered = strings.Replace(rendered, "<details>", "<details open>", 1)
		}
		photo, err := Photograph(t.Context(), *browser, Page(title, rendered), 1000, height)
		if err != nil {
			t.Fatal(err)
		}
		if photo, err = WithSource(photo, string(text)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("../../docs/pictures/"+name+".png", photo, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// WithSource keeps the image of a picture, and IsOf recognizes its source.
func TestSourceOfAPicture(t *testing.T) {
	var made bytes.Buffer
	if err := png.Encode(&made, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	text, err := WithSource(made.Bytes(), "a body")
	if err != nil {
		t.Fatal(err)
	}
	if decoded, err := png.Decode(bytes.NewReader(text)); err != nil || decoded.Bounds() != image.Rect(0, 0, 3, 2) {
		t.Errorf("the picture cannot be read: %v", err)
	}
	if !IsOf(text, "a body") || IsOf(text, "another body") || IsOf(made.Bytes(), "a body") {
		t.Error("the picture does not say what it was made of")
	}
	if _, err := WithSource([]byte("no picture"), "a body"); err == nil {
		t.Error("what is no picture gets a source")
	}
}

// The pictures in the documentation show the pages and the dashboards of today, and are on a page.
func TestPicturesAreCurrent(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var docs strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(text)
	}
	read := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	shown := map[string]bool{}
	for name := range pullRequests {
		shown[name+".png"] = true
		if text := read("../../docs/pictures/" + name + ".png"); !IsOf([]byte(text), read(texts+name+".md")) {
			t.Errorf("%s.png is of an earlier text; make pictures makes it", name)
		} else if len(text) > 300<<10 {
			t.Errorf("%s.png has %d bytes", name, len(text))
		}
	}
	dashboards, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(dashboards) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, file := range dashboards {
		var d dashboard
		if err := json.Unmarshal([]byte(read(file)), &d); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json") + ".svg"
		shown[name] = true
		text := read("../../docs/pictures/" + name)
		for _, title := range append([]string{d.Title}, titles(d)...) {
			if !strings.Contains(text, ">"+html.EscapeString(title)+"<") {
				t.Errorf("%s has no panel %q; make pictures makes it", name, title)
			}
		}
	}
	files, err := os.ReadDir("../../docs/pictures")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !shown[f.Name()] || !strings.Contains(docs.String(), "(pictures/"+f.Name()+")") {
			t.Errorf("%s is made by no test, or on no page", f.Name())
		}
	}
}

func titles(d dashboard) []string {
	var out []string
	for _, p := range d.Panels {
		out = append(out, p.Title)
	}
	return out
}
