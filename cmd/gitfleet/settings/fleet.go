package settings

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Identity returns the repository, path and reference of the hub in a canonical form, which
// inventories on members contain. It never has credentials. It does not include a pinned
// commit, since that changes with each release.
func (s SourceConfig) Identity() string {
	id := remote.Identity(s.URL)
	if at := strings.Trim(path.Clean("/"+s.Path), "/"); at != "" {
		id += "//" + at
	}
	for _, ref := range []struct{ kind, name string }{{"branch", s.Branch}, {"tag", s.Tag}, {"semver", s.SemVer}} {
		if ref.name != "" {
			id += "?" + ref.kind + "=" + ref.name
		}
	}
	return id
}

// defaultFleetName returns the name of a fleet whose configuration sets none. It ends with
// digits that depend on the source.
func (s SourceConfig) defaultFleetName() string {
	sum := sha256.Sum256([]byte(s.Identity()))
	return fleetNamePrefix(path.Base(remote.Identity(s.URL))) + hex.EncodeToString(sum[:4])
}

// longestPrefix leaves room for eight digits in a label value, which may have 63 characters.
const longestPrefix = 54

var notInLabel = regexp.MustCompile(`[^a-z0-9._-]`)

// fleetNamePrefix turns a repository's name into the beginning of a label value.
func fleetNamePrefix(repository string) string {
	name := strings.Trim(notInLabel.ReplaceAllString(strings.ToLower(repository), "-"), "-._")
	name = strings.Trim(name[:min(len(name), longestPrefix)], "-._")
	return cmp.Or(name, "fleet") + "-"
}

// Fleet returns the name and ID of the fleet. The name is that in the state directory, or
// otherwise that of the configuration, or the default. The ID is that in the state directory,
// or a new one.
func (c Config) Fleet(saved protocol.Fleet) (protocol.Fleet, error) {
	f := protocol.Fleet{Name: c.FleetName, ID: saved.ID, Source: c.Source.Identity()}
	switch {
	case f.Name == "" && saved.Name != "":
		f.Name = saved.Name
	case f.Name == "":
		f.Name = c.Source.defaultFleetName()
	case saved.ID != "" && f.Name != saved.Name: // without an ID nothing was written under the saved name
		return f, c.fault("fleetName", fmt.Sprintf("the fleet in %s is %q, and the configuration says %q: under another name gitfleet would not find what it has on the members, leave it there and place everything once more; set fleetName: %s, or use another stateDir for another fleet",
			c.StateDir, saved.Name, f.Name, saved.Name))
	}
	if f.ID == "" {
		f.ID = uuid.NewString()
	}
	return f, nil
}

// NameFleet sets the name of the fleet if the configuration does not. It uses the name of the
// daemon, or the default if daemon is empty because none answers; note then says that the name
// may be wrong.
func (c *Config) NameFleet(daemon string) (note string, err error) {
	switch {
	case c.FleetName != "" && daemon != "" && c.FleetName != daemon:
		return "", c.fault("fleetName", fmt.Sprintf("the configuration says %q, and the daemon is the fleet %q", c.FleetName, daemon))
	case c.FleetName != "":
		return "", nil
	case daemon != "":
		c.FleetName = daemon
		return "", nil
	case c.Source.URL == "":
		return "", c.fault("fleetName", "set it or source.url: no daemon answers from which to take the name")
	}
	c.FleetName = c.Source.defaultFleetName()
	return fmt.Sprintf("the name of the fleet is assumed to be %q, since neither the configuration nor a daemon names it", c.FleetName), nil
}
