/* The Lua function library, built into the program (made from src/lua by scripts/lua-to-c). */
#ifndef LATER_LUA_LUA_LIB_H
#define LATER_LUA_LUA_LIB_H

extern const long lua_lib_number; /* rises with each version that changes the library */
extern const char lua_lib_hash[]; /* of the text without the number */
extern const char lua_lib_text[]; /* for FUNCTION LOAD */

#endif
