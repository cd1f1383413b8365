package build

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/test/repository"
)

func FuzzKustomization(f *testing.F) {
	repository.EachFile(f, "../testdata/*/*.txtar", func(name string, data []byte) {
		if slices.Contains(FileNames, filepath.Base(name)) {
			f.Add(data)
		}
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		got := parsed("kustomization.yaml", string(data))
		if got.problems.HasErrors() {
			return
		}
		// every address that kustomize could read must be among the mentions
		text, err := json.Marshal(got.spec.Resources)
		if err != nil {
			t.Fatal(err)
		}
		remote := slices.ContainsFunc(got.mentions, func(m mention) bool { return isRemote(m.value) || m.isRepository() })
		if bytes.Contains(text, []byte("://")) && !remote {
			t.Fatalf("%s has an address that is not mentioned", text)
		}
	})
}
