package gitsource

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// As many references as a list may have are looked through once. With a comparison of each with all others this takes minutes.
func TestManyReferencesAreLookedThroughOnce(t *testing.T) {
	const n = 600_000
	refs := packp.NewAdvRefs()
	for i := range n {
		var h plumbing.Hash
		binary.BigEndian.PutUint32(h[:], uint32(1+i/2)) //nolint:gosec // it is small
		refs.References[fmt.Sprintf("refs/heads/%d", i)] = h
	}
	if got := fetchTargets(refs, plumbing.NewHash("ff")); len(got.wants) != n/2 {
		t.Errorf("%d objects are wanted, want %d", len(got.wants), n/2)
	}
}

// No list of references causes a panic. What is found is an object in the list, or the pinned commit.
func FuzzReferences(f *testing.F) {
	const h = "0123456789012345678901234567890123456789"
	list := func(lines ...string) []byte {
		var out bytes.Buffer
		for _, l := range lines {
			fmt.Fprintf(&out, "%04x%s", 4+len(l), l)
		}
		return append(out.Bytes(), "0000"...)
	}
	f.Add(list(h+" HEAD\x00symref=HEAD:refs/heads/main ofs-delta\n", h+" refs/heads/main\n", h+" refs/tags/v1.2.0\n", h+" refs/tags/v1.2.0^{}\n"))
	f.Add(list("# service=git-upload-pack\n"))
	f.Add(list("0000000000000000000000000000000000000000 capabilities^{}\x00 agent=git/2\n", "shallow "+h+"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		refs := packp.NewAdvRefs()
		if refs.Decode(bytes.NewReader(text)) != nil {
			return
		}
		there := map[plumbing.Hash]bool{}
		for _, tip := range refs.References {
			there[tip] = true
		}
		if refs.Head != nil {
			there[*refs.Head] = true
		}
		for _, ref := range []Ref{{}, {Branch: "main"}, {Tag: "v1.2.0"}, {SemVer: ">=1"}, {Commit: h}} {
			found, err := ref.resolve(refs)
			if err != nil {
				continue
			}
			direct := refs.Capabilities.Supports(capability.AllowReachableSHA1InWant) || refs.Capabilities.Supports("allow-any-sha1-in-want")
			for _, want := range found.wants {
				if !there[want] && !(direct && want == found.object) {
					t.Errorf("%s wants %s", ref, want)
				}
			}
			if !there[found.object] && ref.Commit == "" {
				t.Errorf("%s is %s", ref, found.object)
			}
		}
		if found, err := tipOf(refs, "main"); err == nil && !there[found] {
			t.Errorf("main is %s", found)
		}
	})
}
