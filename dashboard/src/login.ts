// The login form, for a server that does not let everybody read.

import { ApiError, type Api } from "./api";
import { byId, setText } from "./dom";

export class LoginForm {
  private readonly section = byId("login");
  private readonly form = byId<HTMLFormElement>("login-form");
  private readonly error = byId("login-error");
  private readonly username = byId<HTMLInputElement>("login-username");
  private readonly password = byId<HTMLInputElement>("login-password");
  private readonly button = byId<HTMLButtonElement>("login-button");

  constructor(private readonly api: Api) {}

  /** Shows the form until the server accepts a login. */
  async ask(reason: string): Promise<void> {
    this.show(true);
    setText(this.error, reason);
    while (!(await this.attempt()));
    this.password.value = "";
    this.show(false);
  }

  private show(visible: boolean): void {
    this.section.hidden = !visible;
    byId("page").hidden = visible;
    if (visible) this.username.focus();
  }

  private async attempt(): Promise<boolean> {
    await this.submitted();
    this.button.disabled = true;
    try {
      await this.api.login(this.username.value, this.password.value);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setText(this.error, error.message);
      this.password.select();
      return false;
    } finally {
      this.button.disabled = false;
    }
  }

  private submitted(): Promise<void> {
    return new Promise((resolve) => {
      const once = (event: SubmitEvent): void => {
        event.preventDefault();
        resolve();
      };
      this.form.addEventListener("submit", once, { once: true });
    });
  }
}
