// Command seal completes a directory with the files of a release: it writes their provenance, an in-toto
// statement with SLSA's predicate, then checksums.txt, and signs both with minisign:
//
//	seal DIR VERSION COMMIT UNIXTIME GOVERSION
//
// The environment variable MINISIGN_KEY has the secret key, as "minisign -G" writes it into a file, and
// MINISIGN_PASSWORD its password, if it has one. Without a key nothing is signed, and it says so.
// BUILDER_ID is the URI of the builder in the provenance. The same files and key give the same bytes.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"aead.dev/minisign"
)

func main() {
	if err := run(os.Args[1:], os.Getenv, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "seal:", err)
		os.Exit(1)
	}
}

const repository = "https://github.com/gitfleet/gitfleet"

func run(args []string, getenv func(string) string, errOut io.Writer) error {
	if len(args) != 5 {
		return errors.New("write seal DIR VERSION COMMIT UNIXTIME GOVERSION")
	}
	dir, version, seconds := args[0], args[1], args[3]
	if _, err := strconv.ParseInt(seconds, 10, 64); err != nil {
		return fmt.Errorf("time: %w", err)
	}
	subjects, err := subjectsOf(dir)
	if err != nil {
		return err
	}
	provenance := "gitfleet_" + version + ".intoto.json"
	text, err := json.MarshalIndent(statementOf(subjects, version, args[2], args[4], getenv("BUILDER_ID")), "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, provenance), append(text, '\n'), 0o644); err != nil {
		return err
	}
	if subjects, err = subjectsOf(dir); err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, s := range subjects {
		fmt.Fprintf(&sums, "%s  %s\n", s.Digest["sha256"], s.Name)
	}
	if err := os.WriteFile(filepath.Join(dir, "checksums.txt"), sums.Bytes(), 0o644); err != nil {
		return err
	}
	key, err := keyOf(getenv)
	if err != nil || key == nil {
		if err == nil {
			fmt.Fprintln(errOut, "seal: nothing is signed: MINISIGN_KEY is not set")
		}
		return err
	}
	for _, name := range []string{"checksums.txt", provenance} {
		if err := sign(filepath.Join(dir, name), *key, "timestamp:"+seconds+"\tfile:"+name+"\thashed"); err != nil {
			return err
		}
	}
	return nil
}

// A resource has a name or an address, and a digest, as in-toto describes it.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// subjectsOf returns the files of a directory, sorted by name.
func subjectsOf(dir string) ([]resource, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []resource
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		all = append(all, resource{Name: e.Name(), Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is empty", dir)
	}
	return all, nil
}

// A statement is an in-toto statement with the provenance of a release.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

func statementOf(subjects []resource, version, commit, goVersion, builder string) statement {
	const release = repository + "/blob/main/.ci/release"
	if builder == "" {
		builder = release
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1"}
	build := &s.Predicate.BuildDefinition
	build.BuildType = release
	build.ExternalParameters = map[string]string{"version": version}
	build.InternalParameters = map[string]string{"go": goVersion}
	build.ResolvedDependencies = []resource{{URI: "git+" + repository + "@refs/tags/" + version, Digest: map[string]string{"gitCommit": commit}}}
	s.Predicate.RunDetails.Builder.ID = builder
	return s
}

// keyOf returns the secret key in the environment; nil if there is none.
func keyOf(getenv func(string) string) (*minisign.PrivateKey, error) {
	text := []byte(strings.TrimSpace(getenv("MINISIGN_KEY")))
	if len(text) == 0 {
		return nil, nil
	}
	var key minisign.PrivateKey
	var err error
	if minisign.IsEncrypted(text) {
		key, err = minisign.DecryptKey(getenv("MINISIGN_PASSWORD"), text)
	} else {
		err = key.UnmarshalText(text)
	}
	if err != nil {
		return nil, errors.New("MINISIGN_KEY is no secret key of minisign, or MINISIGN_PASSWORD is not its password")
	}
	return &key, nil
}

// sign signs the file at a path and writes the signature to path.minisig.
func sign(path string, key minisign.PrivateKey, comment string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	r := minisign.NewReader(bytes.NewReader(content))
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	return os.WriteFile(path+".minisig", r.SignWithComments(key, comment, "signature of a release of gitfleet"), 0o644)
}
