// Package bill makes software bills of materials, as CycloneDX documents: of a Go binary, and of
// an image with such binaries. What is in them follows from the build information of the
// binaries; the same input gives the same bytes.
package bill

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// A Binary is a Go program that was built.
type Binary struct {
	Info *debug.BuildInfo
	Sum  [sha256.Size]byte
}

// Read reads the build information of a binary.
func Read(path string) (*Binary, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return &Binary{info, sha256.Sum256(content)}, nil
}

// Setting returns a build setting, such as GOARCH, or "".
func (b *Binary) Setting(key string) string {
	for _, s := range b.Info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// OfBinary returns the bill of a binary: the modules that are compiled into it, and the standard
// library.
func OfBinary(b *Binary, version string) *cyclonedx.BOM {
	program, libraries := b.components(version, "")
	return billOf(program, b.Sum, []dependent{{program.BOMRef, libraries}})
}

// An Image is an image with a binary for each platform.
type Image struct {
	Name, Version string
	Digest        [sha256.Size]byte // of the index or the manifest
	Binaries      []*Binary
	Modules       []*debug.Module // whose content is in the image besides the binaries
}

// OfImage returns the bill of an image: its binaries, the modules that are compiled into each,
// and the other modules.
func OfImage(i Image) *cyclonedx.BOM {
	digest := hex.EncodeToString(i.Digest[:])
	image := cyclonedx.Component{
		BOMRef: "image", Type: cyclonedx.ComponentTypeContainer, Name: i.Name, Version: i.Version,
		PackageURL: "pkg:oci/" + i.Name + "@sha256%3A" + digest + "?tag=" + i.Version,
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: digest}},
	}
	var content []cyclonedx.Component
	var graph []dependent
	for _, b := range i.Binaries {
		program, libraries := b.components(i.Version, "?goarch="+b.Setting("GOARCH")+"&goos="+b.Setting("GOOS"))
		content = append(content, program)
		graph = append(graph, dependent{program.BOMRef, libraries})
	}
	for _, m := range i.Modules {
		content = append(content, library(m.Path, m.Version, m.Sum))
	}
	return billOf(image, i.Digest, append([]dependent{{image.BOMRef, content}}, graph...))
}

// A dependent is a component, and what it depends on.
type dependent struct {
	ref string
	on  []cyclonedx.Component
}

// billOf returns the bill of a component whose hash identifies it.
func billOf(of cyclonedx.Component, sum [sha256.Size]byte, graph []dependent) *cyclonedx.BOM {
	components, dependencies := []cyclonedx.Component{}, []cyclonedx.Dependency{}
	for _, d := range graph {
		refs := make([]string, len(d.on))
		for i, c := range d.on {
			refs[i] = c.BOMRef
			if !slices.ContainsFunc(components, func(known cyclonedx.Component) bool { return known.BOMRef == c.BOMRef }) {
				components = append(components, c)
			}
		}
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: d.ref, Dependencies: &refs})
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, sum[:]).URN()
	bom.Metadata = &cyclonedx.Metadata{Component: &of}
	bom.Components = &components
	bom.Dependencies = &dependencies
	return bom
}

// Write writes a bill that was made at a time.
func Write(out io.Writer, bom *cyclonedx.BOM, at time.Time) error {
	bom.Metadata.Timestamp = at.UTC().Format(time.RFC3339)
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

// components returns a program and its libraries. Build information has no graph: the program
// depends on every module. The qualifiers, as of a package URL, tell several builds apart.
func (b *Binary) components(version, qualifiers string) (program cyclonedx.Component, libraries []cyclonedx.Component) {
	url := purl(b.Info.Main.Path, version) + qualifiers
	program = cyclonedx.Component{
		BOMRef: url, Type: cyclonedx.ComponentTypeApplication, Name: b.Info.Main.Path, Version: version,
		PackageURL: url, Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(b.Sum[:])}},
		Properties: &[]cyclonedx.Property{},
	}
	for _, s := range b.Info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" || s.Key == "vcs.revision" {
			*program.Properties = append(*program.Properties, cyclonedx.Property{Name: "cdx:gomod:build:" + s.Key, Value: s.Value})
		}
	}
	libraries = []cyclonedx.Component{library("std", b.Info.GoVersion, "")}
	for _, m := range b.Info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		libraries = append(libraries, library(m.Path, m.Version, m.Sum))
	}
	return program, libraries
}

// library returns a module. Its sum is a SHA-256 in base64 after "h1:", or empty.
func library(path, version, sum string) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef: purl(path, version), Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version,
		PackageURL: purl(path, version), Scope: cyclonedx.ScopeRequired,
	}
	if digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(digest) == sha256.Size {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(digest)}}
	}
	return c
}

// purl is the package URL of a Go module.
func purl(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}
