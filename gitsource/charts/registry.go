package charts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Masterminds/semver/v3"
	"oras.land/oras-go/v2/registry"
	orasremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
)

// An ociRegistry has charts as artifacts.
type ociRegistry struct {
	cfg Config
	// path is HOST/PATH, without the name of a chart.
	path string
}

func newRegistry(cfg Config, path string) *ociRegistry {
	return &ociRegistry{cfg, strings.TrimRight(path, "/")}
}

// ask calls a function with the server and the repository of a chart.
func (r *ociRegistry) ask(ctx context.Context, name string, do func(context.Context, *server, *orasremote.Repository) error) error {
	host, _, _ := strings.Cut(r.path, "/")
	return r.cfg.ask(ctx, host, func(ctx context.Context, s *server) error {
		credential, err := s.registryCredential()
		if err != nil {
			return err
		}
		repository, err := orasremote.NewRepository(r.path + "/" + name)
		if err != nil {
			return err
		}
		repository.PlainHTTP, repository.MaxMetadataBytes = s.plain, maxMetadata
		repository.Client = &auth.Client{
			Client: s.client, Cache: auth.NewCache(), Header: http.Header{"User-Agent": {userAgent}},
			Credential: auth.StaticCredential(host, credential),
		}
		err = do(ctx, s, repository)
		if errors.Is(err, auth.ErrBasicCredentialNotFound) {
			return errors.New("401 Unauthorized: the registry asks for a user name and a password; set them for its host in hosts of the configuration")
		}
		if answer, ok := errors.AsType[*errcode.ErrorResponse](err); ok && s.header != "" && answer.StatusCode == http.StatusUnauthorized {
			return errors.New("401 Unauthorized: the registry refuses the credentials that hosts of the configuration has for its host")
		}
		return err
	})
}

// registryCredential returns the credentials in the form of registries.
func (s *server) registryCredential() (auth.Credential, error) {
	if s.header == "" {
		return auth.EmptyCredential, nil
	}
	if token, is := strings.CutPrefix(s.header, "Bearer "); is {
		return auth.Credential{AccessToken: token}, nil
	}
	req := http.Request{Header: http.Header{"Authorization": {s.header}}}
	user, password, ok := req.BasicAuth()
	if !ok {
		return auth.EmptyCredential, errors.New("the credentials are of a kind that registries do not know")
	}
	return auth.Credential{Username: user, Password: password}, nil
}

// maxMetadata limits a manifest and a page of tags, and maxTags the tags of one chart.
const (
	maxMetadata = 4 << 20
	maxTags     = 100_000
)

func (r *ociRegistry) archive(ctx context.Context, chart lockfile.Chart) (packed archive, err error) {
	err = r.ask(ctx, chart.Name, func(ctx context.Context, s *server, repository *orasremote.Repository) (err error) {
		packed, err = s.blob(ctx, repository, chart.Digest)
		return err
	})
	return packed, err
}

func (s *server) blob(ctx context.Context, repository *orasremote.Repository, digest string) (packed archive, err error) {
	_, body, err := repository.Blobs().(registry.ReferenceFetcher).FetchReference(ctx, digest)
	if err != nil {
		return packed, err
	}
	return s.receive(body, s.cfg.Limits.ArchiveBytes)
}

func (r *ociRegistry) find(ctx context.Context, asked lockfile.Request) (chart lockfile.Chart, packed archive, err error) {
	chart = lockfile.Chart{Request: asked}
	err = r.ask(ctx, asked.Name, func(ctx context.Context, s *server, repository *orasremote.Repository) (err error) {
		if chart.Resolved, err = resolve(ctx, repository, asked.Version); err != nil {
			return err
		}
		if chart.Digest, err = digestOfTag(ctx, repository, tagOf(chart.Resolved)); err != nil {
			return err
		}
		packed, err = s.blob(ctx, repository, chart.Digest)
		return err
	})
	return chart, packed, err
}

// resolve returns the newest version of a range. A version needs no list of tags.
func resolve(ctx context.Context, repository *orasremote.Repository, version string) (string, error) {
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err == nil {
		return version, nil
	}
	var versions []string
	err := repository.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			versions = append(versions, strings.ReplaceAll(tag, "_", "+"))
		}
		if len(versions) > maxTags {
			return fmt.Errorf("it has more than %d tags; write a version instead of a range", maxTags)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return newest(version, versions)
}

// tagOf returns the tag of a version, in which no plus is allowed.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// archiveTypes are the media types of the archives of charts.
var archiveTypes = map[string]bool{
	"application/vnd.cncf.helm.chart.content.v1.tar+gzip": true,
	"application/tar+gzip":                                true, // of Helm 3.6 and before
}

// digestOfTag returns the digest of the archive of a tag.
func digestOfTag(ctx context.Context, repository *orasremote.Repository, tag string) (string, error) {
	_, body, err := repository.FetchReference(ctx, tag)
	if err != nil {
		return "", err
	}
	text, err := readLimited(body, maxMetadata, "the manifest")
	if err != nil {
		return "", err
	}
	var manifest struct {
		Layers []struct{ MediaType, Digest string }
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return "", fmt.Errorf("the manifest is not JSON: %w", err)
	}
	for _, layer := range manifest.Layers {
		if archiveTypes[layer.MediaType] {
			return layer.Digest, nil
		}
	}
	return "", errors.New("what the registry has there is no chart of Helm")
}

// newest returns the newest of some versions that is in a range.
func newest(asked string, versions []string) (string, error) {
	allowed, err := semver.NewConstraint(asked)
	if err != nil {
		return "", fmt.Errorf("version %q is neither a version nor a range of versions such as ^1.2 or 1.x", asked)
	}
	var best *semver.Version
	for _, text := range versions {
		v, err := semver.NewVersion(text)
		if err == nil && allowed.Check(v) && (best == nil || best.LessThan(v)) {
			best = v
		}
	}
	if best == nil {
		return "", fmt.Errorf("none of the %d versions there is in %s", len(versions), asked)
	}
	return best.Original(), nil
}
