-- A session of Neovim with the language server, for editors.rs: each line that it prints is one fact.

local buffer = vim.api.nvim_get_current_buf()
local command = { vim.env.PLUMB, "lsp" }
local client = vim.lsp.start_client({ name = "plumb", cmd = command, root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(buffer, client)

local function say(...)
  io.stdout:write(table.concat({ ... }, " "), "\n")
end

-- Waits until the buffer has so many diagnostics.
local function wait_for(count)
  return vim.wait(30000, function()
    return #vim.diagnostic.get(buffer) == count
  end, 20)
end

-- Asks about a place: the line from 1, and the UTF-16 units before it.
local function ask(method, line, character, more)
  local place = {
    textDocument = { uri = vim.uri_from_bufnr(buffer) },
    position = { line = line - 1, character = character },
  }
  local params = vim.tbl_extend("force", place, more or {})
  local answers = vim.lsp.buf_request_sync(buffer, "textDocument/" .. method, params, 30000)
  for _, answer in pairs(answers or {}) do
    return answer.result
  end
end

local function line(number)
  return vim.api.nvim_buf_get_lines(buffer, number - 1, number, false)[1]
end

local function type_over(number, text)
  vim.api.nvim_buf_set_lines(buffer, number - 1, number, false, { text })
end

wait_for(1)
local found = vim.diagnostic.get(buffer)[1]
say("diagnostic", found.lnum + 1, found.message)
type_over(6, "size = 50")
say("corrected", tostring(wait_for(0)))
say("hover", vim.split(ask("hover", 6, 1).contents.value, "\n")[1])
type_over(10, 'value = "${network_volume.models.da}"')
say("completion", ask("completion", 10, 34).items[1].label)
say("definition", ask("definition", 10, 30).range.start.line + 1)
vim.lsp.util.apply_workspace_edit(ask("rename", 5, 27, { newName = "title" }), "utf-16")
say("renamed", line(2), line(5))
type_over(6, "size   =   50")
vim.lsp.util.apply_text_edits(ask("formatting", 1, 0, { options = { tabSize = 2, insertSpaces = true } }), buffer, "utf-16")
say("formatted", line(6))
vim.cmd("qa!")
