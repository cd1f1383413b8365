// Package version returns the version of the binary.
package version

import (
	"runtime/debug"
	"slices"
)

// Release is set by the linker for a release.
var Release string

// String returns the version of gitfleet: the release, or the commit it was built from.
func String() string {
	if Release != "" {
		return "gitfleet " + Release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "gitfleet (unknown)"
	}
	text := "gitfleet " + info.Main.Version
	if revision := Revision(info); revision != "" {
		text += " " + revision
	}
	return text + " " + info.GoVersion
}

// Revision returns the commit that a program was built from; empty if it is not known.
func Revision(info *debug.BuildInfo) string {
	i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	if i < 0 {
		return ""
	}
	return info.Settings[i].Value
}
