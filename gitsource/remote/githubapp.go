package remote

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// GitHubApp authenticates as an installation of a GitHub App.
type GitHubApp struct {
	// ID is the App's ID or client ID.
	ID string
	// Installation is the ID of its installation in the organisation.
	Installation int64
	// Key is the App's private key in PEM form.
	Key SecretSource
	// APIURL is https://api.github.com if empty, and https://HOST/api/v3 for
	// GitHub Enterprise Server.
	APIURL string
}

func (a GitHubApp) validate(scheme string) error {
	if a == (GitHubApp{}) {
		return nil
	}
	var errs []error
	if a.ID == "" {
		errs = append(errs, FieldErrorf("auth.githubApp.id", "must be set"))
	}
	if a.Installation <= 0 {
		errs = append(errs, FieldErrorf("auth.githubApp.installation", "must be set"))
	}
	if a.Key.IsZero() {
		errs = append(errs, FieldErrorf("auth.githubApp.key", "must be set"))
	}
	u, err := url.Parse(a.api())
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "https" && u.Scheme != scheme {
		errs = append(errs, FieldErrorf("auth.githubApp.apiURL", "must be an address such as https://HOST/api/v3"))
	}
	return errors.Join(errs...)
}

func (a GitHubApp) api() string {
	return strings.TrimSuffix(cmp.Or(a.APIURL, "https://api.github.com"), "/")
}

// An appTokens requests installation tokens, and caches the last one until shortly before it
// expires.
type appTokens struct {
	app    GitHubApp
	getenv func(string) string

	mu    sync.Mutex
	token Secret
	until time.Time
}

// tokenMargin is the time before its expiry at which a token is replaced.
const tokenMargin = 5 * time.Minute

// get returns a token that is valid for at least tokenMargin.
func (a *appTokens) get(ctx context.Context, via http.RoundTripper) (Secret, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); a.token.Empty() || now.Add(tokenMargin).After(a.until) {
		token, until, err := a.create(ctx, via, now)
		if err != nil {
			return Secret{}, fmt.Errorf("GitHub App token: %w", err)
		}
		a.token, a.until = token, until
	}
	return a.token, nil
}

// forget drops the cached token because the server has refused it.
func (a *appTokens) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = Secret{}
}

// create requests a token that can only read.
func (a *appTokens) create(ctx context.Context, via http.RoundTripper, now time.Time) (Secret, time.Time, error) {
	jwt, err := a.jwt(now)
	if err != nil {
		return Secret{}, time.Time{}, err
	}
	address := fmt.Sprintf("%s/app/installations/%d/access_tokens", a.app.api(), a.app.Installation)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(`{"permissions":{"contents":"read"}}`))
	if err != nil {
		return Secret{}, time.Time{}, err
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("Authorization", "Bearer "+jwt.value)
	client := &http.Client{Transport: via, CheckRedirect: stayOnHost, Timeout: time.Minute}
	res, err := client.Do(req)
	if err != nil {
		return Secret{}, time.Time{}, err
	}
	if res.StatusCode >= 300 {
		return Secret{}, time.Time{}, refusal(res, now)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxSecret))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return Secret{}, time.Time{}, err
	}
	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Token == "" || answer.ExpiresAt.IsZero() {
		return Secret{}, time.Time{}, errors.New("response has no token") // the response is not quoted, since it might contain a token
	}
	return Secret{answer.Token}, answer.ExpiresAt, nil
}

// jwt returns the JSON Web Token that authenticates the App.
func (a *appTokens) jwt(now time.Time) (Secret, error) {
	content, err := a.app.Key.Read(a.getenv)
	if err != nil {
		return Secret{}, err
	}
	parsed, _ := ssh.ParseRawPrivateKey([]byte(content.value))
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return Secret{}, errors.New("private key is not an RSA key in PEM form, as GitHub Apps have")
	}
	claims, err := json.Marshal(map[string]any{
		"iat": now.Add(-time.Minute).Unix(), // the server's clock may be behind
		"exp": now.Add(9 * time.Minute).Unix(),
		"iss": a.app.ID,
	})
	if err != nil {
		return Secret{}, err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return Secret{}, fmt.Errorf("sign: %w", err)
	}
	return Secret{signed + "." + encode(signature)}, nil
}
