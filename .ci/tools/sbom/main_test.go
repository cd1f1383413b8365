package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// The bill of this test's binary names the modules that are compiled into it, and is the same
// each time.
func TestBill(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write := func() []byte {
		var out bytes.Buffer
		if err := run([]string{binary, "v1.2.3", "1790000000"}, &out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	text := write()
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
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
	if !bytes.Equal(text, write()) {
		t.Error("it is another each time")
	}
	if err := run([]string{os.DevNull, "v1", "0"}, &bytes.Buffer{}); err == nil {
		t.Error("a file that is no binary has a bill")
	}
}
