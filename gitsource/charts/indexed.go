package charts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
)

// An indexed repository has an index.yaml that says where the archives are.
type indexed struct {
	cfg  Config
	base *url.URL
}

func newIndexed(cfg Config, address string) (*indexed, error) {
	u, err := hostOf(address)
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	return &indexed{cfg, u}, nil
}

// maxIndex limits an index.yaml; the largest public ones have some 20 MiB.
const maxIndex = 64 << 20

// get asks for a file of a server, with its credentials, and passes the response to a function, which closes it.
func (r *indexed) get(ctx context.Context, address *url.URL, what string, read func(*server, io.ReadCloser) error) error {
	return r.cfg.ask(ctx, address.Host, func(ctx context.Context, s *server) error {
		if err := s.checkURL(address); err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
		if err != nil {
			return err
		}
		req.Header.Set("User-Agent", userAgent)
		if s.header != "" {
			req.Header.Set("Authorization", s.header)
		}
		res, err := s.client.Do(req)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			text, _ := readLimited(res.Body, 4<<10, "") // the status is more important
			return fmt.Errorf("%s: %s: %s", what, res.Status, s.credentials.Text(res.Header.Get("Content-Type"), text, 200))
		}
		return read(s, res.Body)
	})
}

func (r *indexed) archive(ctx context.Context, chart lockfile.Chart) (packed archive, err error) {
	address, err := hostOf(chart.URL)
	if err != nil {
		return packed, fmt.Errorf("url of the lock file: %w", err)
	}
	err = r.get(ctx, address, "the archive", func(s *server, body io.ReadCloser) (err error) {
		packed, err = s.receive(body, r.cfg.Limits.ArchiveBytes)
		return err
	})
	return packed, err
}

func (r *indexed) find(ctx context.Context, asked lockfile.Request) (chart lockfile.Chart, packed archive, err error) {
	var text []byte
	err = r.get(ctx, r.base.JoinPath("index.yaml"), "index.yaml", func(_ *server, body io.ReadCloser) (err error) {
		text, err = readLimited(body, maxIndex, "index.yaml")
		return err
	})
	if err != nil {
		return chart, packed, err
	}
	var index struct {
		Entries map[string][]struct {
			Version, Digest string
			URLs            []string
		}
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		return chart, packed, fmt.Errorf("index.yaml is not valid: %w", err)
	}
	entries, known := index.Entries[asked.Name]
	if !known {
		return chart, packed, fmt.Errorf("index.yaml has no chart %s", asked.Name)
	}
	var versions []string
	for _, e := range entries {
		versions = append(versions, e.Version)
	}
	chart = lockfile.Chart{Request: asked}
	if chart.Resolved, err = newest(asked.Version, versions); err != nil {
		return chart, packed, err
	}
	for _, e := range entries {
		if e.Version != chart.Resolved {
			continue
		}
		if len(e.URLs) == 0 {
			return chart, packed, errors.New("index.yaml does not say where the chart is")
		}
		address, err := r.base.Parse(e.URLs[0])
		if err != nil {
			return chart, packed, fmt.Errorf("the url in index.yaml: %w", err)
		}
		chart.URL = address.String()
		if packed, err = r.archive(ctx, chart); err != nil {
			return chart, packed, err
		}
		chart.Digest = packed.digest
		if declared := strings.TrimPrefix(e.Digest, "sha256:"); declared != "" && "sha256:"+declared != chart.Digest {
			err := fmt.Errorf("the archive has the digest %s, and index.yaml says %s", chart.Digest, e.Digest)
			return chart, packed, errors.Join(err, os.Remove(packed.path))
		}
		break
	}
	return chart, packed, nil
}
