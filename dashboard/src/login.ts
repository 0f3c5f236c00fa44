// The login form: for a server that does not let everybody read, and for those who look without a login.

import { ApiError, type Api } from "./api";
import { byId, setText } from "./dom";

export class LoginForm {
  private readonly section = byId("login");
  private readonly form = byId<HTMLFormElement>("login-form");
  private readonly error = byId("login-error");
  private readonly username = byId<HTMLInputElement>("login-username");
  private readonly password = byId<HTMLInputElement>("login-password");
  private readonly button = byId<HTMLButtonElement>("login-button");
  private readonly cancel = byId<HTMLButtonElement>("login-cancel");
  private asking: Promise<boolean> | null = null;

  constructor(private readonly api: Api) {}

  /** Shows the form until the server accepts a login (true), or the user continues without (false) where that is possible. */
  async ask(reason: string, mayCancel = false): Promise<boolean> {
    this.cancel.hidden = !mayCancel;
    setText(this.error, reason);
    this.asking ??= this.untilDone();
    return this.asking;
  }

  private async untilDone(): Promise<boolean> {
    this.show(true);
    let done: boolean | null = null;
    while (done === null) done = await this.attempt();
    this.password.value = "";
    this.show(false);
    this.asking = null;
    return done;
  }

  private show(visible: boolean): void {
    this.section.hidden = !visible;
    byId("page").hidden = visible;
    // The name is filled in: what is missing is the password.
    if (visible) (this.username.value === "" ? this.username : this.password).focus();
  }

  /** Whether a login was accepted, or cancelled; null for another try. */
  private async attempt(): Promise<boolean | null> {
    if (!(await this.submitted())) return false;
    this.button.disabled = true;
    try {
      await this.api.login(this.username.value, this.password.value);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setText(this.error, error.message);
      this.password.select();
      return null;
    } finally {
      this.button.disabled = false;
    }
  }

  /** True when the form is sent, false when it is given up. */
  private submitted(): Promise<boolean> {
    return new Promise((resolve) => {
      this.form.onsubmit = (event) => {
        event.preventDefault();
        resolve(true);
      };
      this.cancel.onclick = () => resolve(false);
    });
  }
}
