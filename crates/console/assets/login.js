// Logs this browser in: by a token, or by the name and the password of a role, for which the server gives a token.

const byToken = document.getElementById("by-token");
const byPassword = document.getElementById("by-password");
const problem = document.getElementById("problem");

async function logIn(token) {
  const answer = await fetch(`/login?token=${encodeURIComponent(token)}`, { redirect: "follow" });
  if (!answer.ok) throw new Error("The server does not know this token.");
  if (location.pathname.startsWith("/console")) location.reload();
  else location.replace("/console/");
}

async function tokenOf(name, password) {
  const bytes = new TextEncoder().encode(`${name}:${password}`);
  const credentials = btoa(String.fromCharCode(...bytes));
  const answer = await fetch("/v1/tokens", { method: "POST", credentials: "omit", headers: { Authorization: `Basic ${credentials}` } });
  const body = await answer.json().catch(() => ({}));
  if (answer.status === 401) throw new Error("The server has no such role, or the password is wrong.");
  if (!answer.ok) throw new Error(body.detail ?? `The server answers ${answer.status}.`);
  return body.token;
}

function submits(form, logIn) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      await logIn();
    } catch (error) {
      problem.textContent = error instanceof TypeError ? "The server does not answer." : error.message;
    }
    button.disabled = false;
  });
}

submits(byToken, () => logIn(document.getElementById("token").value.trim()));
submits(byPassword, async () => {
  await logIn(await tokenOf(document.getElementById("name").value, document.getElementById("password").value));
});
