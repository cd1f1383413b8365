package bill

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// readBinary reads a program of this module that is built for the test.
func readBinary(t *testing.T) *Binary {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sbom")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../sbom").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write returns a bill as it is written and read again.
func write(t *testing.T, bom *cyclonedx.BOM) (text []byte, read cyclonedx.BOM) {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, bom, time.Unix(1790000000, 0)); err != nil {
		t.Fatal(err)
	}
	text = bytes.Clone(out.Bytes())
	if err := cyclonedx.NewBOMDecoder(&out, cyclonedx.BOMFileFormatJSON).Decode(&read); err != nil {
		t.Fatal(err)
	}
	return text, read
}

// The bill of a binary names the modules that are compiled into it, and is the same
// each time.
func TestBillOfBinary(t *testing.T) {
	binary := readBinary(t)
	text, bom := write(t, OfBinary(binary, "v1.2.3"))
	if c := bom.Metadata.Component; c.Version != "v1.2.3" || c.PackageURL != "pkg:golang/github.com/gitfleet/gitfleet/.ci/tools@v1.2.3" {
		t.Errorf("it is the bill of %+v", c)
	}
	if bom.Metadata.Timestamp != "2026-09-21T14:13:20Z" {
		t.Errorf("it was made at %s", bom.Metadata.Timestamp)
	}
	found := map[string]cyclonedx.Component{}
	for _, c := range *bom.Components {
		found[c.Name] = c
	}
	if c := found["github.com/CycloneDX/cyclonedx-go"]; c.Version == "" || c.Hashes == nil || len((*c.Hashes)[0].Value) != 64 {
		t.Errorf("the library that writes it: %+v", c)
	}
	if _, ok := found["std"]; !ok {
		t.Error("the standard library is missing")
	}
	if again, _ := write(t, OfBinary(binary, "v1.2.3")); !bytes.Equal(text, again) {
		t.Error("it is another each time")
	}
	if _, err := Read(os.DevNull); err == nil {
		t.Error("a file that is no binary has a bill")
	}
}

// The bill of an image has each binary, their modules once, and what else is in the image; every
// reference is that of one component.
func TestBillOfImage(t *testing.T) {
	var builds []*Binary
	built := readBinary(t)
	for _, arch := range []string{"amd64", "arm64"} {
		info := *built.Info
		info.Settings = []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: arch}}
		builds = append(builds, &Binary{&info, built.Sum})
	}
	_, bom := write(t, OfImage(Image{
		Name: "gitfleet", Version: "v1.2.3", Binaries: builds, Modules: []*debug.Module{{Path: "example.com/roots", Version: "v0.1.0"}},
	}))
	if c := bom.Metadata.Component; c.Type != cyclonedx.ComponentTypeContainer || c.Name != "gitfleet" || c.Version != "v1.2.3" {
		t.Errorf("it is the bill of %+v", c)
	}
	refs := []string{bom.Metadata.Component.BOMRef}
	programs := 0
	for _, c := range *bom.Components {
		if slices.Contains(refs, c.BOMRef) {
			t.Errorf("%s is there twice", c.BOMRef)
		}
		refs = append(refs, c.BOMRef)
		if c.Type == cyclonedx.ComponentTypeApplication {
			programs++
		}
	}
	if programs != 2 || !slices.Contains(refs, "pkg:golang/example.com/roots@v0.1.0") || !slices.Contains(refs, "pkg:golang/github.com/gitfleet/gitfleet/.ci/tools@v1.2.3?goarch=arm64&goos=linux") {
		t.Errorf("it has %q", refs)
	}
	for _, d := range *bom.Dependencies {
		for _, ref := range append(*d.Dependencies, d.Ref) {
			if !slices.Contains(refs, ref) {
				t.Errorf("%s is no component", ref)
			}
		}
	}
}
