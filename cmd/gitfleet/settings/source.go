package settings

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/reconciler/member/kubeconfig"
)

// GitConfig returns the configuration of package gitsource.
func (c Config) GitConfig(log *slog.Logger) gitsource.Config {
	s := c.Source
	return gitsource.Config{
		URL: s.URL, Ref: gitsource.Ref{Branch: s.Branch, Tag: s.Tag, SemVer: s.SemVer, Commit: s.Commit},
		Interval: s.Interval.Duration, StateDir: filepath.Join(c.StateDir, "git"), Auth: s.auth(),
		AllowHTTP: s.AllowHTTP, AllowFile: s.AllowFile, Signatures: s.Signatures.Requirements(), Limits: c.Limits.git(),
		Logger: log, Getenv: os.Getenv,
	}
}

func (s SourceConfig) auth() remote.Auth {
	return remote.Auth{
		Token: secret(s.TokenFile, s.TokenEnv), Bearer: secret(s.BearerFile, s.BearerEnv),
		Username: s.Username, Password: secret(s.PasswordFile, s.PasswordEnv), CABundle: s.CABundle,
		SSH: remote.SSH{
			Key: secret(s.SSHKeyFile, s.SSHKeyEnv), Passphrase: secret(s.SSHPassphraseFile, s.SSHPassphraseEnv), KnownHosts: s.SSHKnownHosts,
		},
		GitHubApp: remote.GitHubApp{
			ID: s.GitHubAppID, Installation: s.GitHubAppInstallation,
			Key: secret(s.GitHubAppKeyFile, s.GitHubAppKeyEnv), APIURL: s.GitHubAppAPIURL,
		},
	}
}

func secret(file, env string) remote.SecretSource {
	return remote.SecretSource{File: file, Env: env}
}

// Requirements returns the required signatures; nil if none are.
func (s SignaturesConfig) Requirements() *gitsource.Signatures {
	if !s.present && len(s.OpenPGP)+len(s.Paths) == 0 && s.AllowedSigners == "" && s.Since == "" && !s.AllowRewrite {
		return nil
	}
	d := &gitsource.Signatures{OpenPGP: s.OpenPGP, AllowedSigners: s.AllowedSigners, Since: s.Since, AllowRewrite: s.AllowRewrite}
	for _, p := range s.Paths {
		d.Paths = append(d.Paths, gitsource.SignedPath{Path: p.Path, Signers: p.Signers})
	}
	return d
}

// plainFile is the maximum size of any file, whether or not it is a manifest, since generators
// of kustomizations read other files as well.
const plainFile = 16 << 20

func (l LimitsConfig) git() gitsource.Limits {
	return gitsource.Limits{
		FetchBytes: int64(l.FetchBytes), Objects: l.FetchObjects, FetchTime: l.FetchTime.Duration, ListTime: l.ListTime.Duration,
		ObjectBytes: int64(l.ObjectBytes), Packs: l.Packs, FileBytes: max(plainFile, int64(l.FileSize)),
	}
}

// HubOptions returns the configuration of package hub.
func (c Config) HubOptions() hub.Options {
	l := c.Limits
	return hub.Options{Path: c.Source.Path, Limits: hub.Limits{
		Files: l.Files, FileSize: int64(l.FileSize), Documents: l.Documents, AliasExpansion: l.AliasExpansion, Depth: l.Depth,
		Objects: l.Objects, CommitSize: int64(l.CommitSize), Builds: l.Builds, BuildInput: int64(l.BuildInput),
		BuildTime: l.BuildTime.Duration, BuildOutput: int64(l.BuildOutput),
	}}
}

// Credentials is the part of the configuration that finds members.
func (m MembersConfig) Credentials() (kubeconfig.Sources, error) {
	c := kubeconfig.Sources{Dir: m.KubeconfigDir, File: m.Kubeconfig, AllowExec: m.AllowExec, AllowInsecure: m.AllowInsecure}.Cached()
	if m.SecretNamespace == "" {
		return c, nil
	}
	in, err := rest.InClusterConfig()
	if err != nil {
		return c, fmt.Errorf("members.secretNamespace: %w", err)
	}
	in.QPS = -1 // each member's Secret is read every few seconds, and the server's fairness limits the rate
	client, err := kubernetes.NewForConfig(in)
	if err != nil {
		return c, fmt.Errorf("members.secretNamespace: %w", err)
	}
	c.Secrets = client.CoreV1().Secrets(m.SecretNamespace)
	return c, nil
}

// Loader returns a loader of commits.
func (c Config) Loader() *hub.Loader { return hub.NewLoader(c.HubOptions()) }
